"""What stages pass on: the question and its filter, what was dropped and noted, and the state that holds it all."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Self, TypeVar
from uuid import UUID

from corecube.scope import AccessScope
from retrieval.engine.deadline import Deadline
from retrieval.engine.types import Answerability, ChunkId, MemoryType, Passage, QueryTerms, Ranking, Vector

_Part = TypeVar("_Part")
_Read = TypeVar("_Read")


@dataclass(frozen=True, slots=True)
class Query:
    """What was asked."""

    #: The text as sent; a model is shown all of it.
    text: str
    #: The part that retrieval reads, with its quotes, minus and OR.
    retrieval_text: str
    #: The same without search syntax, for models.
    plain_text: str = ""
    #: The same as `websearch_to_tsquery` reads it as meant; empty without quotes, minus and OR.
    operators: str = ""


@dataclass(frozen=True, slots=True)
class MetadataFilter:
    """The documents that a request's conditions leave of its scope: those with one of these combinations of facts."""

    #: The facts asked about, and their combinations as JSON arrays of texts, as the store writes them.
    names: tuple[str, ...]
    facts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFilter:
    """What a request leaves of the scope's documents. It can only narrow: the scope is applied beside it."""

    #: Documents that changed from then on, and remembered items that happened then.
    since: datetime | None = None
    #: Remembered items that happened before; another document may speak of an earlier time whenever it changed.
    until: datetime | None = None
    #: Remembered items of this project, and those of none; other documents belong to no project. Empty for all.
    project: str = ""
    #: Remembered items of these types; other documents were remembered as none and stay. Empty for all.
    memory_types: frozenset[MemoryType] = frozenset()
    #: What conditions on metadata leave; None without any.
    metadata: MetadataFilter | None = None
    #: Only these documents. Empty for all.
    documents: frozenset[UUID] = frozenset()
    #: Only chunks of documents of these source types. Empty for all.
    source_types: frozenset[str] = frozenset()
    #: Only chunks that hold this kind of content (`retrieval.text.hints`). Empty for all.
    hint: str = ""
    #: Only chunks of at least this quality, 0 to 1.
    min_quality: float = 0.0

    def __bool__(self) -> bool:
        """Return whether it leaves anything out."""
        by_document = self.since or self.until or self.project or self.memory_types or self.documents
        by_content = self.source_types or self.hint or self.min_quality
        return self.metadata is not None or bool(by_document or by_content)


class DropReason(StrEnum):
    """Why a hit left the ranking: the stored value, and its label. Each stage's `about` lists those that it gives."""

    label: str

    def __new__(cls, value: str, label: str = "") -> Self:
        """Return the member of a stored value."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.label = label
        return member

    ACCESS = "access", "outside the scope"
    #: Deleted, out of scope or excluded by the request's filter; which of these is not disclosed.
    STALE = "stale", "deleted or excluded"
    OUTSIDE_WINDOW = "outside_window", "outside the pool"
    #: Its place in the pool went to a chunk of a rarer source type.
    SOURCE_QUOTA = "source_quota", "place given to another source type"
    QUALITY = "quality", "quality too low"
    RERANK_CUT = "rerank_cut", "not reranked"
    BELOW_FLOOR = "below_floor", "below the minimum score"
    DUPLICATE = "duplicate_of", "duplicate"
    #: Repeats better hits. Only traces of earlier releases have it.
    REPETITIVE = "repetitive", "repetitive"
    BUDGET = "budget", "over the token budget"
    TOP_K = "top_k", "beyond the requested number of hits"


@dataclass(frozen=True, slots=True)
class Drop:
    """A hit that a stage removed, and why."""

    chunk_id: ChunkId
    reason: DropReason
    #: One clause with the numbers: "0.93 twin of ...", "rank 214, window 100".
    detail: str = ""
    #: The numbers of `detail` unrounded, by name: {"rank": 214, "window": 100}.
    numbers: Mapping[str, float] = field(default_factory=dict, compare=False)
    #: The chunk that was kept in its place.
    instead: ChunkId | None = field(default=None, compare=False)

    @property
    def is_nameless(self) -> bool:
        """Whether it is counted and nobody is told which chunk it was, which may be out of scope."""
        return self.reason in {DropReason.ACCESS, DropReason.STALE}


def drops_beyond(
    hits: Ranking, limit: int, reason: DropReason, detail: str = "rank {rank}, window {limit}", *, key: str = "window"
) -> tuple[Drop, ...]:
    """Return a drop for each hit behind the first `limit`; `key` names the limit among the drop's numbers."""
    return tuple(
        Drop(hit.chunk_id, reason, detail.format(rank=rank, limit=limit), {"rank": rank, key: limit})
        for rank, hit in enumerate(hits[limit:], start=limit + 1)
    )


@dataclass(frozen=True, slots=True)
class Note:
    """Something a stage wants seen. A degraded note marks a fallback or a cut corner."""

    code: str
    text: str
    degraded: bool = False
    #: The text has words of documents in scope: it is shown with the search, and not stored.
    quotes: bool = False


@dataclass(frozen=True, slots=True)
class Span:
    """What one stage did: the trace's row."""

    stage: str
    seconds: float
    hits_in: int
    hits_out: int
    drops: tuple[Drop, ...] = ()
    notes: tuple[Note, ...] = ()
    #: The stage that this one ran inside of, for legs that run side by side.
    parent: str = ""
    #: What happened inside of it, as structured events: numbers and names, never text of a query or a document.
    events: tuple[Mapping[str, object], ...] = ()
    #: The fields of the state that the stage fills.
    gives: frozenset[str] = field(default=frozenset(), compare=False)
    #: What `hits_out` counts, in order, as the stage left it. A stored trace does not have it.
    left: Ranking = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchState:
    """Everything one search knows so far. Stages return a changed copy."""

    query: Query
    scope: AccessScope
    deadline: Deadline
    now: datetime
    #: Hits wanted in the end.
    top_k: int
    #: Whether it is an admin who searches. Others are not told when exactly a document was read, nor every digit of
    #: what rests on the whole index.
    is_admin: bool = False
    terms: QueryTerms = field(default_factory=QueryTerms)
    vector: Vector | None = None
    #: Nothing is to be searched, or nothing more: the pipeline ends here.
    is_finished: bool = False
    #: What other threads read meanwhile, by the stage that needs it: each waits for it and returns it.
    prefetch: Mapping[str, Callable[[], Any]] = field(default_factory=dict)
    #: What only one preset's stages know, by its type.
    parts: Mapping[type, Any] = field(default_factory=dict)
    #: What the request, and a router, leave of the scope's documents; every leg and the reading of the pool keep to it.
    filter: RequestFilter = RequestFilter()
    rankings: Mapping[str, Ranking] = field(default_factory=dict)
    hits: Ranking = ()
    #: What each signal counted in this query's ranking; empty before it.
    weights: Mapping[str, float] = field(default_factory=dict)
    #: Whether each hit was checked against the scope a second time; before that none is shown.
    access_checked: bool = False
    #: In the order in which a reader gets them.
    passages: tuple[Passage, ...] = ()
    #: None before it was judged, or when the time was up.
    answerability: Answerability | None = None
    drops: tuple[Drop, ...] = ()
    notes: tuple[Note, ...] = ()
    #: What happened inside of stages, as structured events.
    events: tuple[Mapping[str, object], ...] = ()
    trace: tuple[Span, ...] = ()

    def noted(self, *notes: Note) -> Self:
        """Return the state with further notes."""
        return replace(self, notes=(*self.notes, *notes))

    def part(self, kind: type[_Part]) -> _Part | None:
        """Return what a preset's stages know of this kind; None where they know nothing yet."""
        return self.parts.get(kind)

    def parts_with(self, *parts: object) -> Mapping[type, Any]:
        """Return the parts with some more, each in place of the one of its type."""
        return {**self.parts, **{type(part): part for part in parts}}

    def prefetched(self, stage: str, read: Callable[[], _Read]) -> _Read:
        """Return what another thread read for a stage; where none began to, what `read` reads now."""
        found: _Read = self.prefetch[stage]() if stage in self.prefetch else read()
        return found

    def prefetch_without(self, stage: str) -> Mapping[str, Callable[[], Any]]:
        """Return what other threads read, less what they read for a stage."""
        return {name: wait for name, wait in self.prefetch.items() if name != stage}

    @property
    def degraded(self) -> tuple[str, ...]:
        """The codes of what fell back or was cut short, in order, each once."""
        codes = (note.code for span in self.trace for note in span.notes if note.degraded)
        return tuple(dict.fromkeys(codes))
