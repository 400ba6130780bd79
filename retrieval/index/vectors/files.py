"""The vector files of a build: one for each connection, which only grows, and the counts that say what of it is valid.

    STATE        how far the build is, and for each file its generation and its valid records and tombstones
    5-1.vectors  connection 5, generation 1: a record for each chunk, its vector in int8
    5-1.dead     the places of records that are no longer valid, 4 bytes each

A writer appends, waits for the disk, and then replaces STATE. What is beyond its counts was cut off, and is
overwritten. No Django.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from retrieval.errors import VectorFilesUnavailableError
from retrieval.index.folder import write_atomically

SCHEMA_VERSION: Final = 1  #: Raised by one whenever the same vectors would make other files: then they are built again.
STATE: Final = "STATE"
PLACE: Final = np.dtype("<u4")  #: A tombstone.
#: A chunk: the halves of its document's id, and its ordinal.
ID: Final = np.dtype([("high", "<u8"), ("low", "<u8"), ("ordinal", "<i4")])
_MAX: Final = 127  #: The greatest int8 of which there is a negative.


@cache
def record(dim: int) -> np.dtype[Any]:
    """Return the record of a chunk: its id and its vector, whose components times `scale` are the whole vector's."""
    return np.dtype([("vector", "i1", (dim,)), *ID.descr, ("scale", "<f4")])


def quantized(vectors: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Return vectors, shape (n, dim), in int8, each with the scale that its components were divided by."""
    scales = np.abs(vectors).max(axis=1, initial=0.0) / np.float32(_MAX)
    scales[scales == 0] = 1
    return np.rint(vectors / scales[:, None]).astype(np.int8), scales


@dataclass(frozen=True, slots=True)
class FileState:
    """What of a connection's file is valid."""

    generation: int  #: Of one connection's files in a build, no two have the same.
    records: int = 0  #: With those that have a tombstone.
    dead: int = 0  #: Tombstones.


@dataclass(frozen=True, slots=True)
class State:
    """What a commit says: a build's files by connection, and the transaction up to which they follow the database."""

    position: int = 0
    generation: int = 0  #: The highest of all files so far.
    files: Mapping[int, FileState] = field(default_factory=dict)

    @classmethod
    def read(cls, build: Path) -> "State":
        """Return the state of a build; raise VectorFilesUnavailableError."""
        try:
            found = json.loads((build / STATE).read_text(encoding="utf-8"))
            files = {int(key): FileState(**it) for key, it in found["files"].items()}
            return cls(found["position"], found["generation"], files)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise VectorFilesUnavailableError from error

    def check(self, build: Path, dim: int) -> None:
        """Raise OSError or ValueError where files of the build are missing or too short."""
        for connection_id, it in self.files.items():
            parts = [(vectors_file, it.records * record(dim).itemsize), (dead_file, it.dead * PLACE.itemsize)]
            for path_of, size in parts:
                path = path_of(build, connection_id, it.generation)
                if size and path.stat().st_size < size:
                    raise ValueError(f"{path.name} has less than {size} bytes.")

    def write(self, build: Path) -> None:
        """Replace a build's state, whole or not at all."""
        write_atomically(build / STATE, json.dumps(asdict(self)))


def vectors_file(build: Path, connection_id: int, generation: int) -> Path:
    """Return the file with a connection's records."""
    return build / f"{connection_id}-{generation}.vectors"


def dead_file(build: Path, connection_id: int, generation: int) -> Path:
    """Return the file with its tombstones."""
    return build / f"{connection_id}-{generation}.dead"


def read_dead(build: Path, connection_id: int, file: FileState) -> NDArray[np.uint32]:
    """Return the places of a file's records with a tombstone; raise ValueError for others."""
    if not file.dead:
        return np.empty(0, PLACE)
    found = np.fromfile(dead_file(build, connection_id, file.generation), PLACE, file.dead)
    if len(found) < file.dead or found.max() >= file.records:
        raise ValueError(f"{len(found)} of {file.dead} tombstones of {file.records} records.")
    return found


@contextmanager
def readable() -> Iterator[None]:
    """Raise VectorFilesUnavailableError for whatever is wrong with the files."""
    try:
        yield
    except (OSError, ValueError, KeyError) as error:
        raise VectorFilesUnavailableError from error
