"""The unit of a chunk's row numbers: rows of a table, records, or lines of a file."""

from collections.abc import Mapping
from typing import Final

_UNITS: Final[Mapping[str, str]] = {"csv": "row", "excel": "row", "json": "record"}


def row_unit(source_type: str) -> str:
    """Return the unit for a source type: row, record or line."""
    return _UNITS.get(source_type, "line")
