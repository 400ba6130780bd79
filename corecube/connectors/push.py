"""Documents that programs push over the API; they are stored in the database."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Final, Self

from corecube.connectors.globs import EVERYTHING, Globs
from corecube.connectors.setup import SourceConfig, SourceSetup, too_large
from corecube.connectors.types import Capability, Connector, ItemError, SourceItem
from corecube.models import Connection, PushedItem

#: The columns that another push of the same id overwrites.
_REPLACED: Final = ("name", "media_type", "uri", "content", "facts", "modified_at", "version", "pushed_at")


class PushConfig(SourceConfig):
    """Which pushed documents to include; patterns match the documents' ids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pushed:
    """A document that a program pushes."""

    external_id: str
    name: str
    content: bytes
    media_type: str = ""
    uri: str = ""
    modified_at: datetime | None = None
    facts: Mapping[str, str]

    @property
    def version(self) -> str:
        """SHA-256 of all fields."""
        fields = [self.external_id, self.name, self.media_type, self.uri, self.modified_at, dict(self.facts)]
        digest = hashlib.sha256(json.dumps(fields, default=str, sort_keys=True).encode())
        digest.update(self.content)
        return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class PushConnector(Connector):
    """Reads pushed documents. A document leaves the source only when a program deletes it."""

    connection_id: int
    max_bytes: int
    globs: Globs = EVERYTHING

    @classmethod
    def from_setup(cls, setup: SourceSetup) -> Self:
        """Return the connector of a connection's pushed documents; raise ConfigError."""
        config = setup.read(PushConfig)
        return cls(setup.connection, setup.limit(config.max_bytes), config.globs())

    def preflight(self) -> Iterator[Capability]:
        """Yield the capability "list"."""
        count = PushedItem.objects.filter(connection_id=self.connection_id).count()
        yield Capability.passed("list", f"{count} documents were pushed.")

    def items(self) -> Iterator[SourceItem]:
        """Yield the pushed documents, by their ids."""
        rows = PushedItem.objects.filter(connection_id=self.connection_id).defer("content")
        for row in rows.iterator(chunk_size=1000):
            if self.globs.includes(row.external_id):
                yield item_of(row)

    def require_wanted(self, pushed: Pushed) -> None:
        """Raise ItemError for a document that is too large or excluded by the patterns."""
        if len(pushed.content) > self.max_bytes:
            raise too_large(len(pushed.content), self.max_bytes)
        if not self.globs.includes(pushed.external_id):
            raise ItemError("left_out", "The connection's patterns exclude documents with this id.")

    def read(self, item: SourceItem) -> bytes:
        """Return a document's bytes; raise ItemError for a deleted one."""
        row = PushedItem.objects.filter(pk=item.locator, connection_id=self.connection_id).only("content").first()
        if row is None:
            raise ItemError("gone", "The document was deleted during the sync.")
        return bytes(row.content)


def item_of(row: PushedItem) -> SourceItem:
    """Return a pushed document as an item of its source."""
    return SourceItem(
        external_id=row.external_id,
        name=row.name,
        uri=row.uri,
        locator=str(row.pk),
        modified_at=row.modified_at,
        media_type=row.media_type,
        version=row.version,
        facts=row.facts,
    )


def store_pushed(connection: Connection, pushed: Pushed) -> PushedItem:
    """Store a pushed document, replacing an earlier one with the same id, and return the row."""
    row = row_of(connection, pushed)
    PushedItem.objects.bulk_create(
        [row], update_conflicts=True, unique_fields=["connection", "external_id"], update_fields=_REPLACED
    )
    return row


def row_of(connection: Connection, pushed: Pushed) -> PushedItem:
    """Return the row of a pushed document, not stored."""
    return PushedItem(
        connection=connection, version=pushed.version, **{it.name: getattr(pushed, it.name) for it in fields(pushed)}
    )
