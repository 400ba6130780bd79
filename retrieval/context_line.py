"""A chunk as models read it."""

from collections.abc import Sequence


def in_context(title: str, heading_path: Sequence[str], text: str) -> str:
    """Return a line that says where a text stands, "Title > Heading", and the text below it."""
    return f"{' > '.join((title, *heading_path))}\n{text}"
