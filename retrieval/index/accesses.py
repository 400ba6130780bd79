"""Writing when documents were last read."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import connection

from retrieval.index.statements import statement
from retrieval.index.writer import committed_later

_RECORD: Final = statement("upkeep/record_accesses")


@dataclass(frozen=True, slots=True)
class Access:
    """When a document was last read, and how often since that was written last."""

    at: datetime
    times: int


def write_accesses(accesses: Mapping[UUID, Access]) -> None:
    """Add accesses in one statement; accesses of deleted documents are dropped."""
    if not accesses:
        return
    parameters: dict[str, Any] = {
        "documents": list(accesses),
        "moments": [it.at for it in accesses.values()],
        "times": [it.times for it in accesses.values()],
    }
    with committed_later(), connection.cursor() as cursor:
        cursor.execute(_RECORD, parameters)
