"""What the rows that a chunk stands on are called: rows of a table, records, or the lines of a file."""

from collections.abc import Mapping
from typing import Final

_UNITS: Final[Mapping[str, str]] = {"csv": "row", "excel": "row", "json": "record"}


def row_unit(source_type: str) -> str:
    """Return the word for one of them: row, record or line."""
    return _UNITS.get(source_type, "line")
