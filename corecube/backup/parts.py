"""Content in parts: cutting, storing what is not stored yet, and reading with a check of each part."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from time import monotonic, sleep
from typing import Final, TypeVar

from corecube.backup.sealing import Seal
from corecube.connectors.places import Place
from corecube.errors import BackupError

PART_BYTES: Final = 16 * 2**20
FOLDER: Final = "parts"
_WORK_SECONDS: Final = 0.01  #: Of work between two rests; less than a search takes.
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Content:
    """Bytes in parts."""

    size: int
    parts: tuple[str, ...]  #: The names of the parts, in order.


class Parts:
    """The parts in a place.

    Writing and checking take `share` of the time, more than 0 and at most 1, and rest in between.
    """

    def __init__(self, place: Place, seal: Seal, share: float = 1.0) -> None:
        self._place, self._seal, self._share = place, seal, share
        self._present: dict[str, datetime] = {}
        self.written_bytes = 0  #: Stored bytes that this object wrote.

    def look(self) -> dict[str, datetime]:
        """Find the parts that exist, which are not written again; return each with the time when it was written."""
        found = ((path.rpartition("/")[2], path, at) for path, at in self._place.names(FOLDER).items())
        self._present = {name: at for name, path, at in found if _is_part(name) and path == _path(name)}
        return dict(self._present)

    def write(self, blocks: Iterable[bytes | memoryview]) -> Content:
        """Store a content in parts; raise BackupError."""
        size, names = 0, []
        for part in cut(paced(blocks, self._share)):
            names.append(self._write_part(part))
            size += len(part)
        return Content(size, tuple(names))

    def read(self, content: Content) -> Iterator[bytes]:
        """Yield the parts of a content; raise BackupError if one is missing or damaged."""
        return map(self.part, content.parts)

    def part(self, name: str) -> bytes:
        """Return a part; raise BackupError if it is missing or damaged."""
        stored = self._place.read(_path(name))
        if stored is None:
            raise BackupError(f"The part {name} is missing.")
        part = self._seal.unpack(name, stored, max_bytes=PART_BYTES)
        if self._seal.name(part) != name:
            raise BackupError(f"The part {name} is damaged.")
        return part

    def check(self, names: Collection[str]) -> None:
        """Read parts again; raise BackupError if one is missing or damaged.

        A damaged part is deleted, so that the next backup writes it again.
        """
        for name in paced(names, self._share):
            try:
                self.part(name)
            except BackupError:
                self.delete(name)
                raise

    def delete(self, name: str) -> None:
        """Delete a part; raise BackupError."""
        self._place.delete(_path(name))
        self._present.pop(name, None)

    def _write_part(self, part: bytes) -> str:
        name = self._seal.name(part)
        if name not in self._present:
            stored = self._seal.pack(name, part)
            self._place.write(_path(name), stored)
            self.written_bytes += len(stored)
            self._present[name] = datetime.now(UTC)
        return name


def paced(items: Iterable[_T], share: float) -> Iterator[_T]:
    """Yield items, and rest between them so that reading and using them takes a share of the time, at most 1.

    What the items come from waits too, such as a database server that sends rows.
    """
    begun = monotonic()
    for item in items:
        yield item
        if (worked := monotonic() - begun) >= _WORK_SECONDS:
            sleep(worked * (1 / share - 1))
            begun = monotonic()


def cut(blocks: Iterable[bytes | memoryview], size: int = PART_BYTES) -> Iterator[bytes]:
    """Yield the bytes of blocks in parts of `size`, the last one smaller."""
    rest = bytearray()
    for block in blocks:
        rest += block
        while len(rest) >= size:
            yield bytes(rest[:size])
            del rest[:size]
    if rest:
        yield bytes(rest)


def _path(name: str) -> str:
    if not _is_part(name):
        raise BackupError("The manifest names a part that cannot exist.")
    return f"{FOLDER}/{name[:2]}/{name}"


def _is_part(name: str) -> bool:
    return len(name) == 64 and set(name) <= set("0123456789abcdef")  # noqa: PLR2004 -- a SHA-256 in hexadecimal
