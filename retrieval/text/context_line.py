"""A chunk as models read it."""

from collections.abc import Sequence


def in_context(title: str, heading_path: Sequence[str], text: str, context: str = "") -> str:
    """Return a line that says where a text stands, "Title > Heading", what was written of it, and the text below."""
    place = " > ".join((title, *heading_path))
    return "\n".join((place, context, text) if context else (place, text))
