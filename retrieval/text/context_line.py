"""A chunk as models read it."""

from collections.abc import Sequence


def in_context(title: str, heading_path: Sequence[str], text: str, context: str = "") -> str:
    """Return a text below its place in the document, "Title > Heading", and its context line, if any."""
    place = " > ".join((title, *heading_path))
    return "\n".join((place, context, text) if context else (place, text))
