"""Making text that PostgreSQL can hold."""

from corecube.sanitise import storable

__all__ = ["storable"]
