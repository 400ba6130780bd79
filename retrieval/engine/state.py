"""The state of a search that stages pass on."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Self, TypeVar
from uuid import UUID

from corecube.errors import DatabaseUnavailableError
from corecube.scope import AccessScope
from retrieval.engine.deadline import Deadline
from retrieval.engine.quick import quick
from retrieval.engine.types import Answerability, ChunkId, MemoryType, Passage, QueryTerms, Ranking, Vector

_Part = TypeVar("_Part")
_Read = TypeVar("_Read")


@dataclass(frozen=True, slots=True)
class Query:
    """A query."""

    text: str  #: The text as sent; models see all of it.
    retrieval_text: str  #: The part that retrieval reads, with its quotes, minus and OR.
    plain_text: str = ""  #: The same without search syntax, for models.
    operators: str = ""  #: The same in the syntax of `websearch_to_tsquery`; empty without quotes, minus and OR.

    @property
    def for_models(self) -> str:
        """The text for models: without search syntax, unless nothing else is left."""
        return self.plain_text or self.retrieval_text


@dataclass(frozen=True, slots=True)
class MetadataFilter:
    """Limits a scope to the documents with one of these combinations of metadata values."""

    names: tuple[str, ...]  #: Names of metadata fields, and combinations of their values as JSON arrays of texts.
    facts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFilter:
    """A request's filter. It only narrows the scope, which always applies."""

    since: datetime | None = None  #: Documents changed since then, and remembered items since then.
    until: datetime | None = None  #: Remembered items before then; does not apply to other documents.
    #: Remembered items of this project or of none; does not apply to other documents. Empty for all.
    project: str = ""
    #: Remembered items of these types; does not apply to other documents. Empty for all.
    memory_types: frozenset[MemoryType] = frozenset()
    metadata: MetadataFilter | None = None
    documents: frozenset[UUID] = frozenset()  #: Only these documents. Empty for all.
    source_types: frozenset[str] = frozenset()  #: Only chunks of documents of these source types. Empty for all.
    hint: str = ""
    min_quality: float = 0.0  #: Only chunks of at least this quality, 0 to 1.

    def __bool__(self) -> bool:
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
    SOURCE_QUOTA = "source_quota", "slot reserved for another source type"
    QUALITY = "quality", "quality too low"
    RERANK_CUT = "rerank_cut", "below the rerank cutoff"
    BELOW_FLOOR = "below_floor", "below the minimum score"
    DUPLICATE = "duplicate_of", "duplicate"
    REPETITIVE = "repetitive", "repetitive"  #: Repeats better hits. Only traces of earlier releases have it.
    BUDGET = "budget", "over the token budget"
    TOP_K = "top_k", "outside the top hits"


@quick
@dataclass(frozen=True, slots=True)
class Drop:
    """A hit that a stage removed, and why."""

    chunk_id: ChunkId
    reason: DropReason
    detail: str = ""  #: One clause with the numbers: "0.93 twin of ...", "rank 214, window 100".
    #: The numbers of `detail` unrounded, by name: {"rank": 214, "window": 100}.
    numbers: Mapping[str, float] = field(default_factory=dict, compare=False)
    instead: ChunkId | None = field(default=None, compare=False)  #: The chunk that stays in its place.

    @property
    def is_nameless(self) -> bool:
        """Whether it is only counted: the chunk may be out of scope and is not disclosed."""
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
    """A message of a stage. A degraded note marks a fallback or an incomplete result."""

    code: str
    text: str
    degraded: bool = False
    quotes: bool = False


@dataclass(frozen=True, slots=True)
class Span:
    """One stage in the trace."""

    stage: str
    seconds: float
    hits_in: int
    hits_out: int
    drops: tuple[Drop, ...] = ()
    notes: tuple[Note, ...] = ()
    parent: str = ""  #: The stage that ran this one, for parallel legs.
    #: Structured events: numbers and names, never text of a query or a document.
    events: tuple[Mapping[str, object], ...] = ()
    #: The fields of the state that the stage fills.
    gives: frozenset[str] = field(default=frozenset(), compare=False)
    #: The hits that `hits_out` counts, in order. Not stored.
    left: Ranking = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchState:
    """The state of one search. Stages return a changed copy."""

    query: Query
    scope: AccessScope
    deadline: Deadline
    now: datetime
    top_k: int
    #: Whether an admin searches. Others do not see exact access times, nor exact figures of the entire index.
    is_admin: bool = False
    terms: QueryTerms = field(default_factory=QueryTerms)
    vector: Vector | None = None
    is_finished: bool = False  #: The pipeline ends here: nothing more to search.
    #: Results of other threads by the stage that needs them: each function waits and returns one.
    prefetch: Mapping[str, Callable[[], Any]] = field(default_factory=dict)
    parts: Mapping[type, Any] = field(default_factory=dict)  #: State of a single preset's stages, by type.
    #: The filter of the request and the router; every leg and the completion apply it.
    filter: RequestFilter = RequestFilter()
    rankings: Mapping[str, Ranking] = field(default_factory=dict)
    hits: Ranking = ()
    weights: Mapping[str, float] = field(default_factory=dict)
    access_checked: bool = False  #: Whether each hit passed the second access check; no hit is shown before.
    passages: tuple[Passage, ...] = ()
    answerability: Answerability | None = None  #: None before it is estimated, or on a timeout.
    drops: tuple[Drop, ...] = ()
    notes: tuple[Note, ...] = ()
    events: tuple[Mapping[str, object], ...] = ()
    trace: tuple[Span, ...] = ()

    def noted(self, *notes: Note) -> Self:
        """Return the state with further notes."""
        return replace(self, notes=(*self.notes, *notes))

    def with_more(
        self,
        *,
        drops: Iterable[Drop] = (),
        notes: Iterable[Note] = (),
        events: Iterable[Mapping[str, object]] = (),
        **changes: Any,  # noqa: ANN401 -- as `dataclasses.replace` takes them
    ) -> Self:
        """Return the state with further drops, notes and events, and with other fields changed."""
        drops, notes, events = (*self.drops, *drops), (*self.notes, *notes), (*self.events, *events)
        return replace(self, drops=drops, notes=notes, events=events, **changes)

    def part(self, kind: type[_Part]) -> _Part | None:
        """Return the part of this type; None without one."""
        return self.parts.get(kind)

    def parts_with(self, *parts: object) -> Mapping[type, Any]:
        """Return the parts with further ones, which replace parts of their type."""
        return {**self.parts, **{type(part): part for part in parts}}

    def prefetched(self, stage: str, read: Callable[[], _Read]) -> _Read:
        """Return the prefetched value of a stage.

        Without one, or where the prefetching thread had no free database connection, return the result of `read`.
        """
        with suppress(DatabaseUnavailableError):
            if stage in self.prefetch:
                found: _Read = self.prefetch[stage]()
                return found
        return read()

    @property
    def degraded(self) -> tuple[str, ...]:
        """The codes of the degraded notes, in order, each once."""
        codes = (note.code for span in self.trace for note in span.notes if note.degraded)
        return tuple(dict.fromkeys(codes))
