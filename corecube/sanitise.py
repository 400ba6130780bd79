"""Making text that PostgreSQL can hold. Pure."""


def storable(text: str) -> str:
    """Return the text without what PostgreSQL cannot hold: NUL and lone surrogates."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")
