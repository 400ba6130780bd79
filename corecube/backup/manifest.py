"""The manifest of a backup: where the database, the uploads and the key are, and what restoring them requires."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath
from typing import Final

from pydantic import TypeAdapter, ValidationError

from corecube.backup.parts import Content
from corecube.errors import BackupError

FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class TableEntry:
    """The rows of a table, in PostgreSQL's binary COPY format."""

    name: str
    columns: tuple[str, ...]
    rows: int
    content: Content


@dataclass(frozen=True, slots=True)
class SequenceEntry:
    """The state of the sequence of a column; its next value must not have been used."""

    table: str
    column: str
    last_value: int
    is_called: bool


@dataclass(frozen=True, slots=True)
class FileEntry:
    """An uploaded file."""

    path: str  #: Below the folder of uploads, as `folder()` checks it.
    content: Content

    def folder(self) -> PurePosixPath:
        """Return the path; raise BackupError for one that leads out of the folder of uploads."""
        if any(it in {"", ".", ".."} or not it.isprintable() for it in self.path.split("/")):
            raise BackupError("The manifest names a file outside the uploads.")
        return PurePosixPath(self.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A backup."""

    format: int
    version: str  #: Of CoreCube.
    postgresql: str
    made_at: datetime  #: The moment of the database.
    key_id: str  #: Identifies the secret key.
    secret_key: str  #: The key itself if CoreCube made it; empty if it comes from the environment.
    migrations: Mapping[str, tuple[str, ...]]  #: The applied migrations of each app.
    models: tuple[str, ...]  #: Embedding models that the vectors are of; their files are not in the backup.
    tables: tuple[TableEntry, ...]
    sequences: tuple[SequenceEntry, ...]
    files: tuple[FileEntry, ...]

    @property
    def parts(self) -> frozenset[str]:
        """The names of all parts."""
        return frozenset(part for it in self._contents for part in it.parts)

    @property
    def rows(self) -> int:
        """The rows of all tables."""
        return sum(it.rows for it in self.tables)

    @property
    def size(self) -> int:
        """The bytes of all content, uncompressed."""
        return sum(it.size for it in self._contents)

    @property
    def _contents(self) -> list[Content]:
        return [*(it.content for it in self.tables), *(it.content for it in self.files)]


_MANIFEST: Final = TypeAdapter(Manifest)


def to_json(manifest: Manifest) -> bytes:
    """Return a manifest as text."""
    return _MANIFEST.dump_json(manifest)


def from_json(text: bytes) -> Manifest:
    """Return the manifest of a text; raise BackupError if it is none, or one of a later format."""
    try:
        return _MANIFEST.validate_json(text)
    except ValidationError as error:
        raise BackupError(
            "The manifest is damaged, or a later version of CoreCube wrote it; upgrade CoreCube first."
        ) from error
