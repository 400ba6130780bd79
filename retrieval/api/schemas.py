"""What CoreCube's own API reads and writes."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from retrieval.api.preset_schemas import Mode, Overrides, Tier, TopK
from retrieval.api.request_body import RequestBody
from retrieval.ingest.reasons import PERMANENT, advice
from retrieval.models import SyncItem, SyncProblem
from retrieval.presets.catalog import DEFAULT_PRESET


class ScopeIn(RequestBody):
    """Narrows what the principal may see to some connections; nothing here can widen it."""

    model_config = ConfigDict(extra="forbid")

    include: list[str] = Field(default=[], description="Slugs of connections to search; empty means all visible ones.")
    exclude: list[str] = Field(default=[], description="Slugs of connections to leave out.")


class SearchIn(RequestBody):
    """A search."""

    model_config = ConfigDict(extra="forbid")

    query: str = Field(description="What is asked; presets read the first 500 characters.")
    preset: str = DEFAULT_PRESET
    mode: Mode
    top_k: TopK = 10
    scope: ScopeIn = Field(default_factory=ScopeIn)
    explain: bool = Field(default=False, description="Adds the score ledger of each hit, and what each stage did.")
    overrides: Overrides = Field(default_factory=dict)
    draft: bool = Field(default=False, description="For admins: runs with the preset's draft.")
    tier: Tier


class Source(BaseModel):
    """A connection, as the source of a hit or document."""

    connection: str = Field(description="The connection's slug.")
    name: str
    compartment: str
    sensitivity: str
    trust: str


class Pages(BaseModel):
    """The pages that a chunk stands on, from 1, both ends included."""

    start: int
    end: int


class Rows(BaseModel):
    """The rows of a table, records or lines of a file that a chunk stands on, from 1, both ends included."""

    start: int
    end: int
    unit: str = Field(description="row, record or line.")


class MatchOut(BaseModel):
    """A lexeme of the query that a chunk holds."""

    lexeme: str
    idf: float
    share: float = Field(description="What it added to the full-text score.")
    weight: str = Field(description="The heaviest field that holds it: A title, B heading path, C text.")


class LiftOut(BaseModel):
    """What a name in the question, or a link from another hit, added to a hit; a link's both ends are in scope."""

    kind: str = Field(description="named, link, shared_name, hyperlink, triple, next or section.")
    amount: float = Field(description="What it added to the graph signal, which is 1 at most.")
    name: str = Field(description="The name that leads here, as it is written; empty for what stands beside.")
    source_chunk: str | None = Field(description="The chunk that it leads from; null for a name in the question.")
    sentence: str = Field(description="The sentence of that chunk that holds the name; empty where there is none.")


class RelevanceOut(BaseModel):
    """What a language model judged of a hit."""

    relevance_score: float = Field(description="By the rubric, 0 to 100.")
    answerability: bool = Field(description="Whether the hit by itself answers the question.")
    key_evidence: str = Field(description="The few words of it that decided.")


class HitLedger(BaseModel):
    """Everything that speaks for a hit. A signal that was not computed is absent, never 0."""

    signals: dict[str, float]
    ranks: dict[str, int] = Field(description="Places, from 1, in the rankings that found it.")
    contributions: dict[str, float] = Field(description="The parts that the score is the sum of.")
    matches: list[MatchOut]
    lifts: list[LiftOut] = Field(description="What names and links added to the graph signal; helix alone has these.")
    relevance: RelevanceOut | None = Field(default=None, description="Only where a language model judged.")


class HitOut(BaseModel):
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
    rows: Rows | None
    modified_at: datetime | None
    synced_at: datetime
    score: float
    score_type: str
    explain: HitLedger | None = None


class PassageOut(BaseModel):
    """A hit as it was packed for a reader, under its citation number."""

    number: int
    chunk_id: str
    header: str
    token_count: int


class NoteOut(BaseModel):
    """Something that a stage wants seen."""

    code: str
    text: str
    degraded: bool


class DropOut(BaseModel):
    """A chunk that a stage removed."""

    chunk_id: str
    reason: str


class SpanOut(BaseModel):
    """What one stage did."""

    stage: str
    parent: str
    ms: float
    hits_in: int
    hits_out: int
    drops: list[DropOut]
    notes: list[NoteOut]


class ExcludedOut(BaseModel):
    """A connection outside the scope, and the rule that shut it out."""

    connection: str
    name: str
    reason: str


class Explanation(BaseModel):
    """What each stage did; for an admin, also what was outside the scope."""

    spans: list[SpanOut]
    excluded: list[ExcludedOut] | None = Field(default=None, description="Only for an admin.")


class AnswerabilityOut(BaseModel):
    """Whether the passages answer the question, judged on raw signals."""

    verdict: str = Field(description="answerable, partial or not_answerable.")
    confidence: float = Field(description="Probability that the passages hold the answer, 0 to 1.")
    calibrated: bool = Field(description="Whether the confidence was fitted on judged questions of this installation.")
    reason: str = Field(description="Why it is not answerable, or only in part; empty when it is.")
    explanation: str = Field(description="One sentence with the facts behind the reason.")
    signals: dict[str, float] | None = Field(default=None, description="Only when explained: the raw signals.")
    contributions: dict[str, float] | None = Field(
        default=None, description="Only when explained: what each signal added to the log-odds."
    )


class Timings(BaseModel):
    """Milliseconds, in all and by stage."""

    total_ms: float
    stages: dict[str, float]


class SearchOut(BaseModel):
    """What a search found."""

    trace_id: UUID
    preset: str
    preset_version: str = Field(description="Fingerprint of the stages and every number.")
    version: int = Field(description="The preset's version; 0 for the shipped defaults.")
    mode: str = Field(description="hybrid, or the only leg that searched.")
    hits: list[HitOut]
    passages: list[PassageOut]
    answerability: AnswerabilityOut | None = Field(description="None when the time was up before it was judged.")
    degraded: list[str] = Field(description="Codes of what fell back or was cut short.")
    skipped: str = Field(default="", description="Why nothing was searched; empty where something was.")
    timings: Timings
    explain: Explanation | None = None


class SectionOut(BaseModel):
    """The chunks that a chunk can be read with: first and last ordinal, both included."""

    start: int
    end: int


class ChunkOut(BaseModel):
    """A part of a document."""

    ordinal: int
    heading_path: list[str]
    text: str
    token_count: int
    language: str = Field(description="Language of the text in small letters, as english; empty where nothing tells.")
    hints: list[str] = Field(description="Kinds of content in it: table, code, definition ...")
    section: SectionOut
    salience: float | None = Field(description="How much of its document's matter it holds, 0 to 1; null at first.")
    context_line: str = Field(description="What a language model wrote of where it stands; no words of the document.")
    questions: list[str] = Field(description="Questions that it answers, as a model put them.")
    pages: Pages | None
    rows: Rows | None
    url: str


class DocumentOut(BaseModel):
    """A document with a run of its chunks."""

    id: UUID
    title: str
    uri: str = Field(description="Where it stands in its source; empty when it has no address.")
    url: str = Field(description="The document's page.")
    source: Source
    source_type: str
    raw_type: str = Field(description="What the source says it is: media type or suffix; empty for neither.")
    metadata: dict[str, str]
    byte_size: int
    modified_at: datetime | None
    synced_at: datetime
    chunk_count: int
    chunks: list[ChunkOut]


class ProblemOut(BaseModel):
    """An item that could not be taken in."""

    item: str
    reason: str
    message: str
    advice: str = Field(description="What can be done about it; empty where only the message helps.")
    retryable: bool = Field(description="Whether trying it again can help while its source stays as it is.")

    @classmethod
    def of(cls, problem: SyncItem | SyncProblem) -> Self:
        """Return a problem as the API shows it."""
        return cls(
            item=problem.external_id,
            reason=problem.reason,
            message=problem.message,
            advice=advice(problem.reason),
            retryable=problem.reason not in PERMANENT,
        )


class SyncOut(BaseModel):
    """One run over a connection's source."""

    model_config = ConfigDict(from_attributes=True)

    id: UUID
    status: str
    label: str = Field(description='The status in words: "done with 4 problems".')
    kind: str = Field(description="full, changes, retry or dry_run.")
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


class SyncStateOut(BaseModel):
    """A connection's latest sync and the items that it could not take in."""

    connection: str
    sync: SyncOut | None = Field(description="None before the first sync.")
    problem_count: int = Field(description="Items that are not taken in, those of a running sync so far among them.")
    problems: list[ProblemOut] = Field(description="The first hundred.")


class UploadsOut(BaseModel):
    """Files that were taken, and the sync that takes them in."""

    files: list[str]
    sync: SyncOut


class ErrorDetail(BaseModel):
    """Why a request was refused or failed."""

    message: str
    type: str
    param: str | None
    code: str


class ErrorOut(BaseModel):
    """Every error's shape."""

    error: ErrorDetail


#: What an operation may answer instead of its result.
REFUSALS: Final[Mapping[int, type[ErrorOut]]] = dict.fromkeys((400, 401, 403, 404, 422, 429, 503), ErrorOut)
