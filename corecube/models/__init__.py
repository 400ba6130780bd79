"""Who may see what, and where documents come from."""

from corecube.models.access import ApiKey, Compartment, Grant, User
from corecube.models.audit import AuditEvent
from corecube.models.connection import Connection
from corecube.models.push import PushedItem

__all__ = ["ApiKey", "AuditEvent", "Compartment", "Connection", "Grant", "PushedItem", "User"]
