"""Making text that PostgreSQL can hold, and telling what it could not hold."""

from django.db import DataError


def storable(text: str) -> str:
    """Return the text without what PostgreSQL cannot hold: NUL and lone surrogates."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")


def is_unstorable(error: BaseException | None) -> bool:
    """Return whether the database, or the way to it, could not take a value, also where another error wraps that."""
    while error is not None:
        if isinstance(error, DataError):
            return True
        if isinstance(error, UnicodeEncodeError) and error.reason == "surrogates not allowed":
            return True
        error = error.__cause__
    return False
