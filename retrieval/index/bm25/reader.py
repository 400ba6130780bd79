"""Opening the BM25 index for searches, and reading it. No Django."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Final
from uuid import UUID

from tantivy import DocAddress, FieldType, Index, Query, Searcher

from retrieval.engine.types import ChunkId
from retrieval.errors import Bm25UnavailableError
from retrieval.index.bm25 import schema
from retrieval.index.folder import CURRENT, About, Folder, Look, look

_HALF: Final = 2**64
_ENTRIES: Final = "N, total number of docs"


@dataclass(frozen=True, slots=True)
class View:
    """The index as it was at one commit."""

    searcher: Searcher
    language: str
    database: str  #: The history of the database that it was made from.
    position: int  #: Transactions up to this one are in it.
    entries: int  #: Entries as tantivy counts them for its idf, including deleted entries before their merge.

    @property
    def chunks(self) -> int:
        """Number of chunks, without the marker entry."""
        return int(self.searcher.num_docs) - 1

    def best(self, query: Query, depth: int) -> list[tuple[ChunkId, float]]:
        """Return the chunks with the highest scores, at most `depth`, ties by id; raise Bm25UnavailableError."""
        with readable():
            found = self.searcher.search(query, depth, count=False).hits
            ids = self._ids([address for _, address in found])
        scored = [(chunk_id, float(score)) for chunk_id, (score, _) in zip(ids, found, strict=True)]
        return sorted(scored, key=lambda it: (-it[1], it[0]))

    def count(self, query: Query) -> int:
        """Return how many entries match; raise Bm25UnavailableError."""
        with readable():
            return int(self.searcher.search(query, 1, count=True).count)  # type: ignore[attr-defined]  # not in its stubs

    def holding(self, name: str, term: str) -> int:
        """Return how many entries hold a term in a field, as tantivy counts them for its idf."""
        return int(self.searcher.doc_freq(name, term))

    def fingerprints(self, first: int, last: int) -> list[tuple[ChunkId, int]]:
        """Return the chunks of documents whose ids begin with 64 bits from `first` to `last`, with their fingerprints.

        Raises Bm25UnavailableError.
        """
        query = Query.range_query(schema.schema(), schema.HIGH, FieldType.Unsigned, first, last)
        count = self.count(query)
        with readable():
            addresses = [it for _, it in self.searcher.search(query, max(1, count), count=False).hits]
            found = self.searcher.fast_field_values(schema.FINGERPRINT, addresses)
            return [(chunk, int(it or 0)) for chunk, it in zip(self._ids(addresses), found, strict=True)]

    def _ids(self, addresses: list[DocAddress]) -> list[ChunkId]:
        values = (
            self.searcher.fast_field_values(name, addresses) for name in (schema.HIGH, schema.LOW, schema.ORDINAL)
        )
        return [
            ChunkId(UUID(int=int(high or 0) * _HALF + int(low or 0)), int(ordinal or 0))
            for high, low, ordinal in zip(*values, strict=True)
        ]


@dataclass(slots=True)
class Reader:
    """What a process searches with; it notices when another process has written or rebuilt the index."""

    folder: Folder
    _lock: Lock = field(default_factory=Lock, repr=False)
    _opened: "tuple[Look, Index, About, Path] | None" = field(default=None, repr=False)
    _view: tuple[Look, View] | None = field(default=None, repr=False)

    def view(self) -> View:
        """Return the index as it is now; raise Bm25UnavailableError where there is none, or none that can be read."""
        with self._lock, readable():
            pointer = look(self.folder.path / CURRENT)
            if self._opened is None or self._opened[0] != pointer:
                self._opened, self._view = (pointer, *self._open()), None
            _, index, about, build = self._opened
            commit = look(build / "meta.json")
            if self._view is None or self._view[0] != commit:
                index.reload()
                self._view = (commit, _view(index, about))
            return self._view[1]

    def _open(self) -> tuple[Index, About, Path]:
        build = self.folder.current
        about = self.folder.about(build) if build else None
        if build is None or about is None or about.get("schema") != schema.SCHEMA_VERSION:
            raise Bm25UnavailableError
        index = schema.prepare(Index.open(str(build)), about["language"])
        index.config_reader(reload_policy="manual")
        return index, about, build


@contextmanager
def readable() -> Iterator[None]:
    """Raise Bm25UnavailableError for whatever is wrong with the files, tantivy's panics included."""
    try:
        yield
    except (ValueError, OSError, KeyError) as error:
        raise Bm25UnavailableError from error
    except BaseException as error:
        # It is recognised by its name alone.
        if type(error).__name__ != "PanicException":
            raise
        raise Bm25UnavailableError from error


def _view(index: Index, about: About) -> View:
    searcher = index.searcher()
    query = Query.term_query(schema.schema(), schema.MARK, schema.POSITION)
    found = searcher.search(query, 1, count=False).hits
    if not found:
        raise Bm25UnavailableError
    address = found[0][1]
    (position,) = searcher.fast_field_values(schema.POSITION, [address])
    # Only tantivy's explanation of a score states the number of entries that its idf counts.
    parts = [json.loads(query.explain(searcher, address).to_json())]
    while parts:
        part = parts.pop()
        if part["description"] == _ENTRIES:
            return View(searcher, about["language"], about["database"], int(position or 0), int(part["value"]))
        parts += part.get("details") or []
    raise KeyError(_ENTRIES)
