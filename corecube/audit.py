"""Writing the audit log."""

from corecube.models import AuditEvent, User


def record(action: str, *, actor: User | None, subject: str = "", **details: object) -> AuditEvent:
    """Add one event. `details` must be JSON and hold no document or query text."""
    return AuditEvent.objects.create(action=action, actor=actor, subject=subject, details=details)
