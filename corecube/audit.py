"""Writing the audit log."""

from typing import Final

from corecube.models import AuditEvent, User

#: Characters of a subject that are kept.
_LONGEST_SUBJECT: Final = 200


def record(action: str, *, actor: User | None, subject: str = "", **details: object) -> AuditEvent:
    """Add one event. `details` must be JSON and hold no document or query text."""
    return AuditEvent.objects.create(action=action, actor=actor, subject=subject[:_LONGEST_SUBJECT], details=details)
