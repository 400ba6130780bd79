"""Waiting for a record that another web server has not written yet."""

from time import sleep
from typing import Final
from uuid import UUID

from corecube.database import release_connection
from retrieval.models import SearchRecord

_TRIES: Final = 4
_SECONDS: Final = 0.1  #: Together longer than a web server gathers records.


def await_record(record_id: UUID) -> None:
    """Return when a search's record is there, and soon where there is none; those of this process are written first."""
    for _ in range(_TRIES):
        if SearchRecord.objects.filter(pk=record_id).exists():
            return
        release_connection()
        sleep(_SECONDS)
