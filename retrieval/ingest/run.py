"""What the parts of a sync share: its source, its target, the settings that decide what is stored, and its steps."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from time import monotonic
from typing import Any, Final

from django.utils import timezone

from corecube.connectors import connector_for
from corecube.connectors.types import Connector, SourceItem
from corecube.models import Connection
from retrieval.graph.addresses import Place
from retrieval.index import active
from retrieval.index.embedding_index import ensure_index
from retrieval.ingest.encode import Target
from retrieval.ingest.languages import read_language
from retrieval.ingest.parsing import prepare_limited
from retrieval.ingest.preparation import Preparation, PreparedText
from retrieval.models import Sync
from retrieval.text.document import CHUNK_PROFILES, ChunkLimits, RawDocument

_PROGRESS_FIELDS: Final = (
    *("status", "stage", "message", "listed_at", "started_at", "finished_at", "heartbeat_at", "is_private"),
    *("kind", "seen", "added", "changed", "unchanged", "failed", "deleted", "chunks", "encode_seconds", "pace"),
)
Progress = Callable[[Sync], None]
_ITEM_FIELDS: Final = ("name", "uri", "locator", "media_type", "version")


class Doing(StrEnum):
    """What a worker does with items, as messages show it."""

    READING = "Reading it from its source"
    PREPARING = "Parsing and preparing it"
    EMBEDDING = "Embedding it"
    STORING = "Storing it"


@dataclass(frozen=True, slots=True)
class Step:
    """One operation on claimed items, with a time limit for progress."""

    doing: Doing
    claims: tuple[int, ...]
    seconds: float
    since: float  #: When it last made progress, by the monotonic clock.


@dataclass(slots=True)
class Steps:
    """The current step of a worker. Written by the worker's threads, read by its watchdog's."""

    seconds: float  #: How long one step may take without progress.
    is_ended: bool = False
    _step: Step | None = field(default=None)

    def begin(self, doing: Doing, claims: Sequence[int], *, seconds: float = 0.0) -> None:
        """Begin a step, with a limit of `seconds` if that is more than usual; raise SyncEndedError after the end."""
        self.require_wanted()
        self._step = Step(doing, tuple(claims), max(self.seconds, seconds), monotonic())

    def progress(self) -> None:
        """Record progress of the step; raise SyncEndedError after the end."""
        self.require_wanted()
        step = self._step
        if step is not None:
            self._step = replace(step, since=monotonic())

    def rest(self) -> None:
        """Record that the worker has no item."""
        self._step = None

    def require_wanted(self) -> None:
        """Raise SyncEndedError after the end."""
        if self.is_ended:
            raise SyncEndedError

    def overdue(self) -> Step | None:
        """Return the step if it exceeds its time limit without progress."""
        step = self._step
        return step if step is not None and monotonic() - step.since > step.seconds else None


@dataclass(frozen=True, slots=True)
class Source:
    """Where a sync reads items, and how it prepares them."""

    connector: Connector
    prepare: Callable[[RawDocument, Preparation], PreparedText] = prepare_limited


@dataclass(frozen=True, slots=True)
class Job:
    """A running sync with its source and its target."""

    sync: Sync
    source: Source
    target: Target
    limits: ChunkLimits

    def recipe(self, item: SourceItem) -> str:
        """Return everything besides the bytes that decides what is stored for an item."""
        target = self.target
        made_by = f"{target.text_search_config} {self.limits} {target.connection.source_type}"
        return f"{made_by} {item.name} {sorted(item.facts.items())}" if item.facts else f"{made_by} {item.name}"

    def prepare(self, item: SourceItem, content: bytes) -> PreparedText:
        """Parse and prepare an item's bytes; raise IngestError and as the source's `prepare` does."""
        connection = self.target.connection
        how = Preparation(
            limits=self.limits,
            tokenizer=self.target.encoder.tokenizer_file,
            facts=dict(item.facts),
            source_type=connection.source_type,
            place=Place(connection.pk, item.external_id, item.uri),
        )
        return self.source.prepare(RawDocument(item.name, content, item.media_type), how)


def job_of(sync: Sync, source: Source | None = None) -> Job:
    """Return a sync with its source and target; raise ConfigError for a source that cannot be read as configured."""
    connection = sync.connection
    source = source or Source(connector_for(connection))
    encoder = active.encoder()
    target = Target(
        connection=connection,
        encoder=encoder,
        index=ensure_index(encoder),
        text_search_config=read_language(connection),
        # The same time for all documents of the sync, whichever worker stores them.
        synced_at=sync.started_at or timezone.now(),
    )
    return Job(sync, source, target, limits_of(connection))


def limits_of(connection: Connection) -> ChunkLimits:
    """Return the chunk sizes for a connection's documents."""
    return CHUNK_PROFILES.get(connection.chunk_profile, ChunkLimits())


class SyncEndedError(Exception):
    """The sync was cancelled, or deleted with its connection; work on it stops."""


def reload(sync: Sync) -> None:
    """Read the current state of a sync; raise SyncEndedError when it is deleted."""
    try:
        sync.refresh_from_db(fields=_PROGRESS_FIELDS)
    except Sync.DoesNotExist as error:
        raise SyncEndedError from error


def item_to_json(item: SourceItem) -> dict[str, Any]:
    """Return an item as it is stored until a worker claims it."""
    modified = item.modified_at.isoformat() if item.modified_at else None
    return {name: getattr(item, name) for name in _ITEM_FIELDS} | {"modified_at": modified, "facts": dict(item.facts)}


def item_from_json(external_id: str, stored: Mapping[str, Any]) -> SourceItem:
    """Return the item that `item_to_json` stored."""
    modified = datetime.fromisoformat(stored["modified_at"]) if stored["modified_at"] else None
    fields = {name: stored[name] for name in _ITEM_FIELDS}
    return SourceItem(external_id=external_id, modified_at=modified, facts=stored["facts"], **fields)
