"""Removes characters that PostgreSQL cannot store. Pure."""


def storable(text: str) -> str:
    """Return the text without NUL and lone surrogates, which PostgreSQL cannot store."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")
