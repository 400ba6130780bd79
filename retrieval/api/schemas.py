"""What CoreCube's own API reads and writes."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from ninja import Schema
from pydantic import ConfigDict, Field

from retrieval.presets import DEFAULT_PRESET

TopK = Annotated[int, Field(ge=1, le=100, description="Hits wanted.")]


class ScopeIn(Schema):
    """Narrows what the principal may see to some connections; nothing here can widen it."""

    model_config = ConfigDict(extra="forbid")

    include: list[str] = Field(default=[], description="Slugs of connections to search; empty means all visible ones.")
    exclude: list[str] = Field(default=[], description="Slugs of connections to leave out.")


class SearchIn(Schema):
    """A search."""

    model_config = ConfigDict(extra="forbid")

    query: str = Field(description="What is asked; presets read the first 500 characters.")
    preset: str = DEFAULT_PRESET
    top_k: TopK = 10
    scope: ScopeIn = Field(default_factory=ScopeIn)
    explain: bool = Field(default=False, description="Adds the score ledger of each hit, and what each stage did.")


class Source(Schema):
    """A connection, as the source of a hit or document."""

    connection: str = Field(description="The connection's slug.")
    name: str
    compartment: str
    sensitivity: str
    trust: str


class Pages(Schema):
    """The pages that a chunk stands on, from 1, both ends included."""

    start: int
    end: int


class MatchOut(Schema):
    """A lexeme of the query that a chunk holds."""

    lexeme: str
    idf: float
    share: float = Field(description="What it added to the full-text score.")
    weight: str = Field(description="The heaviest field that holds it: A title, B heading path, C text.")


class HitLedger(Schema):
    """Everything that speaks for a hit. A signal that was not computed is absent, never 0."""

    signals: dict[str, float]
    ranks: dict[str, int] = Field(description="Places, from 1, in the rankings that found it.")
    contributions: dict[str, float] = Field(description="The parts that the score is the sum of.")
    matches: list[MatchOut]


class HitOut(Schema):
    """A chunk that was found."""

    rank: int
    chunk_id: str
    document_id: UUID
    title: str
    heading_path: list[str]
    text: str
    url: str = Field(description="The chunk on its document's page.")
    source: Source
    source_type: str
    pages: Pages | None
    modified_at: datetime | None
    synced_at: datetime
    score: float
    score_type: str
    explain: HitLedger | None = None


class PassageOut(Schema):
    """A hit as it was packed for a reader, under its citation number."""

    number: int
    chunk_id: str
    header: str
    token_count: int


class NoteOut(Schema):
    """Something that a stage wants seen."""

    code: str
    text: str
    degraded: bool


class DropOut(Schema):
    """A chunk that a stage removed."""

    chunk_id: str
    reason: str


class SpanOut(Schema):
    """What one stage did."""

    stage: str
    parent: str
    ms: float
    hits_in: int
    hits_out: int
    drops: list[DropOut]
    notes: list[NoteOut]


class ExcludedOut(Schema):
    """A connection outside the scope, and the rule that shut it out."""

    connection: str
    name: str
    reason: str


class Explanation(Schema):
    """What each stage did; for an admin, also what was outside the scope."""

    spans: list[SpanOut]
    excluded: list[ExcludedOut] | None = Field(default=None, description="Only for an admin.")


class Timings(Schema):
    """Milliseconds, in all and by stage."""

    total_ms: float
    stages: dict[str, float]


class SearchOut(Schema):
    """What a search found."""

    trace_id: UUID
    preset: str
    preset_version: str
    hits: list[HitOut]
    passages: list[PassageOut]
    degraded: list[str] = Field(description="Codes of what fell back or was cut short.")
    timings: Timings
    explain: Explanation | None = None


class ConnectionsOut(Schema):
    """The connections that the principal may see."""

    connections: list[Source]


class ChunkOut(Schema):
    """A part of a document."""

    ordinal: int
    heading_path: list[str]
    text: str
    token_count: int
    pages: Pages | None
    url: str


class DocumentOut(Schema):
    """A document with a run of its chunks."""

    id: UUID
    title: str
    uri: str = Field(description="Where it stands in its source; empty when it has no address.")
    url: str = Field(description="The document's page.")
    source: Source
    source_type: str
    metadata: dict[str, str]
    byte_size: int
    modified_at: datetime | None
    synced_at: datetime
    chunk_count: int
    chunks: list[ChunkOut]


class ProblemOut(Schema):
    """An item that the last sync could not take in."""

    item: str
    reason: str
    message: str


class SyncOut(Schema):
    """One run over a connection's source."""

    id: UUID
    status: str
    queued_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    seen: int
    added: int
    changed: int
    unchanged: int
    failed: int
    deleted: int
    chunks: int
    message: str


class SyncStateOut(Schema):
    """A connection's latest sync and the items that it could not take in."""

    connection: str
    sync: SyncOut | None = Field(description="None before the first sync.")
    problem_count: int
    problems: list[ProblemOut] = Field(description="The first hundred.")


class UploadsOut(Schema):
    """Files that were taken, and the sync that takes them in."""

    files: list[str]
    sync: SyncOut


class ErrorDetail(Schema):
    """Why a request was refused or failed."""

    message: str
    type: str
    param: str | None
    code: str


class ErrorOut(Schema):
    """Every error's shape."""

    error: ErrorDetail
