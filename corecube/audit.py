"""Writes the audit log."""

from time import time
from typing import Final

from corecube.models import AuditEvent, User

_MAX_SUBJECT_LENGTH: Final = 200
_HOUR_SECONDS: Final = 3600
_recorded_hours: Final[dict[tuple[object, ...], int]] = {}  #: The hour of the last record of frequent events.


def record(action: str, *, actor: User | None, subject: str = "", **details: object) -> AuditEvent:
    """Add one event. `details` must be JSON without document or query text."""
    return AuditEvent.objects.create(action=action, actor=actor, subject=subject[:_MAX_SUBJECT_LENGTH], details=details)


def record_hourly(action: str, *, actor: User, subject: str, key: str) -> None:
    """Add a frequent event, only once per hour and process."""
    event, hour = (action, actor.pk, subject, key), int(time()) // _HOUR_SECONDS
    if _recorded_hours.get(event) != hour:
        record(action, actor=actor, subject=subject, key=key)
        _recorded_hours[event] = hour
