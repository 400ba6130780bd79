"""The search SQL, one file a statement. Every statement that reads chunks is limited to a scope."""

from importlib.resources import files
from typing import Final

_FOLDER: Final = files("retrieval.index") / "sql"


def statement(name: str) -> str:
    """Return the text of `sql/<name>.sql`."""
    return (_FOLDER / f"{name}.sql").read_text(encoding="utf-8")


ANALYZE: Final = statement("analyze")
DENSE_HNSW: Final = statement("dense_hnsw")
DENSE_EXACT: Final = statement("dense_exact")
FULLTEXT: Final = statement("fulltext")
COMPLETE: Final = statement("complete")
