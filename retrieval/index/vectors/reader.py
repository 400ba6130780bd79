"""Opening the vector files for searches, and comparing all vectors in scope with a query's. No Django."""

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any, Final

import numkong
import numpy as np
from numpy.typing import NDArray

from retrieval.engine.types import Vector
from retrieval.errors import VectorFilesUnavailableError
from retrieval.index.folder import CURRENT, About, Folder, Look, look
from retrieval.index.vectors.files import (
    ID,
    SCHEMA_VERSION,
    STATE,
    FileState,
    State,
    quantized,
    read_dead,
    readable,
    record,
    vectors_file,
)

#: Files from this size on are mapped, and shared by all processes; a mapping uses a file descriptor.
_MAPPED_BYTES: Final = 2**18


@dataclass(frozen=True)
class VectorFile:
    """A connection's file as it was at one commit; opened when it is first searched."""

    build: Path
    connection_id: int
    state: FileState
    dim: int

    @cached_property
    def records(self) -> NDArray[Any]:
        """The records, with those that have a tombstone."""
        path = vectors_file(self.build, self.connection_id, self.state.generation)
        of, count = record(self.dim), self.state.records
        if count * of.itemsize < _MAPPED_BYTES:
            return np.fromfile(path, of, count)
        return np.asarray(np.memmap(path, of, mode="r", shape=count))

    @cached_property
    def dead(self) -> NDArray[np.uint32]:
        """The places of records with a tombstone."""
        return read_dead(self.build, self.connection_id, self.state)

    @cached_property
    def vectors(self) -> NDArray[np.int8]:
        """The vectors, shape (records, dim), a view of the file."""
        return np.asarray(self.records["vector"])

    @cached_property
    def ids(self) -> NDArray[Any]:
        """The chunks' ids, a view of the file."""
        return self.records[list(ID.names or ())]

    @cached_property
    def scales(self) -> NDArray[np.float32]:
        """The scales of the vectors, side by side, as a search reads them all."""
        return np.ascontiguousarray(self.records["scale"])

    def __len__(self) -> int:
        """Return the number of chunks."""
        return self.state.records - self.state.dead


@dataclass(frozen=True, slots=True)
class Nearest:
    """The chunks nearest to a vector in int8, in no order."""

    documents: str  #: Their documents, as the text of an array of PostgreSQL.
    ordinals: list[int]


@dataclass(frozen=True, slots=True)
class View:
    """The vector files as they were at one commit."""

    about: About
    position: int  #: Transactions up to this one are in them.
    files: dict[int, VectorFile]  #: By connection.

    def count(self, connection_ids: Collection[int]) -> int:
        """Return how many vectors some connections have."""
        return sum(len(self.files[it]) for it in connection_ids if it in self.files)

    def nearest(self, vector: Vector, connection_ids: Collection[int], count: int) -> Nearest:
        """Return the `count` chunks of some connections with the highest inner product, found by comparing all.

        Raises VectorFilesUnavailableError for files that cannot be read.
        """
        with readable():
            return self._nearest(vector, connection_ids, count)

    def _nearest(self, vector: Vector, connection_ids: Collection[int], count: int) -> Nearest:
        files = [self.files[it] for it in connection_ids if it in self.files]
        starts = np.cumsum([0, *(it.state.records for it in files)])
        scores = np.empty((1, starts[-1]), np.float32)
        query, _ = quantized(vector[None].astype(np.float32))
        for file, start in zip(files, starts, strict=False):
            part = scores[:, start : start + file.state.records]
            numkong.cdist(query, file.vectors, "dot", out=part)
            part *= file.scales
            if file.state.dead:
                part[0, file.dead] = -np.inf
        best = np.argpartition(scores[0], max(0, starts[-1] - count))[-count:]
        best = np.sort(best[np.isfinite(scores[0, best])])
        ends = np.searchsorted(best, starts)
        ids = np.empty(len(best), ID)
        for file, start, first, last in zip(files, starts, ends, ends[1:], strict=False):
            ids[first:last] = file.ids[best[first:last] - start]
        documents = np.stack([ids["high"], ids["low"]], axis=1).astype(">u8").tobytes().hex(",", 16)
        return Nearest(f"{{{documents}}}", ids["ordinal"].tolist())


@dataclass(slots=True)
class Reader:
    """What a process searches with; it notices when another process has written or rebuilt the files."""

    folder: Folder
    _lock: Lock = field(default_factory=Lock, repr=False)
    _view: "tuple[Look, Look, Path, View] | None" = field(default=None, repr=False)

    def view(self) -> View:
        """Return the files as they are now; raise VectorFilesUnavailableError where there are none that can be read."""
        with self._lock, readable():
            pointer = look(self.folder.path / CURRENT)
            former = self._view if self._view and self._view[0] == pointer else None
            build = former[2] if former else self.folder.current
            if build is None:
                raise VectorFilesUnavailableError
            commit = look(build / STATE)
            if former is None or former[1] != commit:
                view = self._open(build, former[3] if former else None)
                former = self._view = (pointer, commit, build, view)
            return former[3]

    def _open(self, build: Path, former: View | None) -> View:
        about = former.about if former else self.folder.about(build)
        if about is None or about.get("schema") != SCHEMA_VERSION:
            raise VectorFilesUnavailableError
        try:
            return _opened(build, about, former)
        except FileNotFoundError:
            # A writer has replaced the state, and removed files of the former one, in between.
            return _opened(build, about, former)


def _opened(build: Path, about: About, former: View | None) -> View:
    state, dim = State.read(build), int(about["dim"])
    state.check(build, dim)
    files = {key: VectorFile(build, key, it, dim) for key, it in state.files.items()}
    known = former.files if former else {}
    # What did not change stays open.
    return View(about, state.position, {key: known[key] if known.get(key) == it else it for key, it in files.items()})
