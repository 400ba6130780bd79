"""Writing the audit log."""

from time import time
from typing import Final

from corecube.models import AuditEvent, User

#: Characters of a subject that are kept.
_MAX_SUBJECT_LENGTH: Final = 200
_HOUR_SECONDS: Final = 3600
#: The hour in which this process last noted what happens often.
_noted: Final[dict[tuple[object, ...], int]] = {}


def record(action: str, *, actor: User | None, subject: str = "", **details: object) -> AuditEvent:
    """Add one event. `details` must be JSON and hold no document or query text."""
    return AuditEvent.objects.create(action=action, actor=actor, subject=subject[:_MAX_SUBJECT_LENGTH], details=details)


def record_hourly(action: str, *, actor: User, subject: str, key: str) -> None:
    """Add an event of what programs do all the time: only the first one of an hour that this process sees."""
    same, hour = (action, actor.pk, subject, key), int(time()) // _HOUR_SECONDS
    if _noted.get(same) != hour:
        record(action, actor=actor, subject=subject, key=key)
        _noted[same] = hour
