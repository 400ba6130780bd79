"""Waiting for a record that another web server has not written yet."""

from time import sleep
from typing import Final
from uuid import UUID

from corecube.database import release_connection
from retrieval.engine.ids import age_of
from retrieval.models import SearchRecord

_SECONDS: Final = 2.0  #: Age from which a record is there or never will be. Web servers gather records for 0.2 s.
_POLL_SECONDS: Final = 0.05


def await_record(record_id: UUID) -> None:
    """Return when a search's record is there, and at once for an id that is not new.

    What this process still has to write is written first.
    """
    while not SearchRecord.objects.filter(pk=record_id).exists() and abs(age_of(record_id)) < _SECONDS:
        release_connection()
        sleep(_POLL_SECONDS)
