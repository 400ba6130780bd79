"""Keeping the vector files of this machine up to date: those of the active embedding index."""

from collections.abc import Iterator, Sequence
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar, Final
from uuid import UUID

import numpy as np
from django.conf import settings
from numpy.typing import NDArray

from retrieval.engine.types import ChunkId
from retrieval.errors import VectorFilesUnavailableError
from retrieval.index import outbox
from retrieval.index.embedding_index import active_row
from retrieval.index.folder import About, Folder
from retrieval.index.following import Content, Entry, Follower, Progress, high_halves
from retrieval.index.vectors.files import SCHEMA_VERSION, State, readable
from retrieval.index.vectors.reader import Reader
from retrieval.index.vectors.writer import Writer, records_of

_HALF: Final = 2**64
_HEADER: Final = 4  #: Bytes before the components of a vector in PostgreSQL's binary form.


class VectorFollower(Follower):
    """Follows the database with the vector files; a build is of one embedding index."""

    label: ClassVar[str] = "vector files"
    command: ClassVar[str] = "vectors"

    @property
    def is_enabled(self) -> bool:
        """Whether this machine has vector files."""
        return bool(settings.CORECUBE_VECTORS)

    def about(self) -> About | None:
        """Return the schema, the active embedding index and the database; None without an index."""
        index = active_row()
        if index is None:
            return None
        return {"schema": SCHEMA_VERSION, "index": index.pk, "dim": index.dim, "database": outbox.history()}

    def content(self) -> Content:
        """Return what is in the searched build; raise VectorFilesUnavailableError."""
        build = self.folder.current
        if build is None:
            raise VectorFilesUnavailableError
        with readable():
            state = State.read(build)
            state.check(build, self._about(build)["dim"])
        return Content(state.position, sum(it.records - it.dead for it in state.files.values()))

    def replace(self, build: Path, batches: Iterator[Sequence[UUID]], position: int) -> None:
        """Replace the vectors of these documents; raise VectorFilesUnavailableError."""
        with readable():
            writer, given = self._writer(build), list(batches)
            writer.remove(list(chain.from_iterable(given)))
            for documents in given:
                self._add(writer, build, documents)
            writer.commit(position)

    def fill(self, build: Path, batches: Iterator[Sequence[UUID]], position: int, progress: Progress) -> int:
        """Add the vectors of these documents; raise VectorFilesUnavailableError."""
        chunks = 0
        with readable():
            writer = self._writer(build)
            for documents in batches:
                chunks += self._add(writer, build, documents)
                progress(chunks)
            writer.commit(position)
        return chunks

    def _about(self, build: Path) -> About:
        """Return what a build was made from; raise ValueError where it does not say."""
        found = self.folder.about(build)
        if found is None:
            raise ValueError(build.name)
        return found

    def _writer(self, build: Path) -> Writer:
        return Writer(build, self._about(build)["dim"])

    def held(self, build: Path, part: int) -> Iterator[Entry]:  # noqa: ARG002 -- what is searched
        """Yield the chunks in the files, each as its record; raise VectorFilesUnavailableError."""
        first, last = high_halves(part)
        with readable():
            for connection_id, file in Reader(self.folder).view().files.items():
                high = file.records["high"]
                places = np.flatnonzero((high >= first) & (high <= last))
                yield from _entries(connection_id, file.records[np.setdiff1d(places, file.dead)])

    def stored(self, build: Path, documents: Sequence[UUID]) -> Iterator[Entry]:
        """Yield the chunks of the database, each as the record that it would have."""
        for connection_id, ids, vectors in self._vectors(build, documents):
            yield from _entries(connection_id, records_of(ids, vectors))

    def _add(self, writer: Writer, build: Path, documents: Sequence[UUID]) -> int:
        chunks = 0
        for connection_id, ids, vectors in self._vectors(build, documents):
            writer.add(connection_id, ids, vectors)
            chunks += len(ids)
        return chunks

    def _vectors(
        self, build: Path, documents: Sequence[UUID]
    ) -> Iterator[tuple[int, list[ChunkId], NDArray[np.float32]]]:
        """Yield the chunks of these documents with their vectors, shape (chunks, dim), by connection."""
        found = outbox.chunk_vectors(documents, self._about(build)["index"])
        for connection_id, group in groupby(found, key=itemgetter(0)):
            chunks = list(group)
            halves = b"".join(vector[_HEADER:] for *_, vector in chunks)
            vectors = np.frombuffer(halves, ">f2").reshape(len(chunks), -1).astype(np.float32)
            yield connection_id, [ChunkId(it[1], it[2]) for it in chunks], vectors


def _entries(connection_id: int, records: NDArray[Any]) -> Iterator[Entry]:
    for it in records:
        yield UUID(int=int(it["high"]) * _HALF + int(it["low"])), (connection_id, it.tobytes())


def follower() -> VectorFollower:
    """Return what keeps the vector files of this installation on this machine."""
    return VectorFollower(Folder(settings.CORECUBE_VECTORS_DIR))
