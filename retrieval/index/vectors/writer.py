"""Writing vectors to a build. No Django."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from retrieval.engine.types import ChunkId
from retrieval.index.folder import ABOUT, wait_for_disk
from retrieval.index.vectors.files import (
    PLACE,
    STATE,
    FileState,
    State,
    dead_file,
    quantized,
    read_dead,
    record,
    vectors_file,
)

_HALF: Final = 2**64
#: Share of a file's records with a tombstone above which it is written anew, and the records up to which it never is.
_MAX_DEAD: Final = 0.2
_FEW: Final = 100
_RECORDS_AT_ONCE: Final = 10_000


@dataclass(slots=True)
class Writer:
    """The one writer of a build. What was not committed is invalid."""

    build: Path
    dim: int
    _files: dict[int, FileState] = field(init=False)
    _generation: int = field(init=False)
    _written: set[Path] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Read the state, which a new build does not have; raise VectorFilesUnavailableError, OSError or ValueError."""
        state = State.read(self.build) if (self.build / STATE).exists() else State()
        state.check(self.build, self.dim)
        self._files, self._generation = dict(state.files), state.generation

    def remove(self, documents: Collection[UUID]) -> None:
        """Give all records of these documents a tombstone, whatever connection they were of."""
        wanted = {(it.int // _HALF, it.int % _HALF) for it in documents}
        highs = np.unique(np.array([high for high, _ in wanted], np.uint64))
        for connection_id, file in self._files.items() if wanted else ():
            records = self._records(connection_id)
            near = np.flatnonzero(_is_in(records["high"], highs))
            ids = zip(records["high"][near].tolist(), records["low"][near].tolist(), strict=True)
            places = [place for place, it in zip(near.tolist(), ids, strict=True) if it in wanted]
            new = np.setdiff1d(np.array(places, PLACE), read_dead(self.build, connection_id, file))
            if len(new):
                path = dead_file(self.build, connection_id, file.generation)
                self._append(path, file.dead * PLACE.itemsize, new)
                self._files[connection_id] = replace(file, dead=file.dead + len(new))

    def add(self, connection_id: int, ids: Sequence[ChunkId], vectors: NDArray[np.float32]) -> None:
        """Append a connection's chunks with their vectors, shape (len(ids), dim)."""
        records = records_of(ids, vectors)
        file = self._files.get(connection_id) or self._new_file()
        path = vectors_file(self.build, connection_id, file.generation)
        self._append(path, file.records * records.itemsize, records)
        self._files[connection_id] = replace(file, records=file.records + len(ids))

    def commit(self, position: int) -> None:
        """Let searches see what was written, with the transaction up to which it follows the database: both or none."""
        for connection_id, file in list(self._files.items()):
            if file.dead == file.records:
                del self._files[connection_id]
            elif file.dead > max(_FEW, _MAX_DEAD * file.records):
                self._files[connection_id] = self._compacted(connection_id, file)
        for path in (*self._written, self.build):
            wait_for_disk(path)
        State(position, self._generation, self._files).write(self.build)
        self._written.clear()
        self._sweep()

    def _records(self, connection_id: int) -> NDArray[Any]:
        file = self._files[connection_id]
        path = vectors_file(self.build, connection_id, file.generation)
        return np.memmap(path, record(self.dim), mode="r", shape=file.records)

    def _new_file(self) -> FileState:
        self._generation += 1
        return FileState(self._generation)

    def _append(self, path: Path, size: int, values: NDArray[Any]) -> None:
        """Write values behind the first `size` bytes of a file, in the place of what follows them."""
        with path.open("r+b" if path.exists() else "w+b") as out:
            out.truncate(size)
            out.seek(size)
            out.write(values.tobytes())
        self._written.add(path)

    def _compacted(self, connection_id: int, file: FileState) -> FileState:
        """Write the valid records to a file of the next generation."""
        records = self._records(connection_id)
        places = np.setdiff1d(np.arange(file.records, dtype=PLACE), read_dead(self.build, connection_id, file))
        compacted = self._new_file()
        path = vectors_file(self.build, connection_id, compacted.generation)
        for first in range(0, len(places), _RECORDS_AT_ONCE):
            self._append(path, first * records.itemsize, records[places[first : first + _RECORDS_AT_ONCE]])
        return replace(compacted, records=len(places))

    def _sweep(self) -> None:
        """Remove former generations, and what a killed writer left; open readers continue to work."""
        valid = {STATE, ABOUT}
        for connection_id, file in self._files.items():
            valid.add(vectors_file(self.build, connection_id, file.generation).name)
            valid.add(dead_file(self.build, connection_id, file.generation).name)
        for path in self.build.iterdir():
            if path.name not in valid:
                path.unlink()


def records_of(ids: Sequence[ChunkId], vectors: NDArray[np.float32]) -> NDArray[Any]:
    """Return the records of chunks with their vectors, shape (len(ids), dim)."""
    records = np.empty(len(ids), record(vectors.shape[1]))
    records["vector"], records["scale"] = quantized(vectors)
    records["high"] = np.array([it.document_id.int // _HALF for it in ids], np.uint64)
    records["low"] = np.array([it.document_id.int % _HALF for it in ids], np.uint64)
    records["ordinal"] = [it.ordinal for it in ids]
    return records


def _is_in(values: NDArray[np.uint64], wanted: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return which of many values are among a few, in order, of which there is at least one."""
    places = np.minimum(np.searchsorted(wanted, values), len(wanted) - 1)
    return np.asarray(wanted[places] == values)
