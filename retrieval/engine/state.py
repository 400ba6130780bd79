"""What stages pass on: the question and its filter, what was dropped and noted, and the state that holds it all."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING
from uuid import UUID

from corecube.scope import AccessScope
from retrieval.engine.deadline import Deadline
from retrieval.engine.types import Answerability, ChunkId, MemoryType, Passage, QueryTerms, Ranking, Vector

if TYPE_CHECKING:
    from retrieval.presets.consolidated.evidence.section_state import SectionState
    from retrieval.presets.contextpack.types import Neighbour, Relevance
    from retrieval.presets.helix.asked import AskedNames


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
class TimeWindow:
    """From when to when, as a question says it; None is open."""

    since: datetime | None = None
    until: datetime | None = None
    #: The words of the question that say it: "last week".
    words: str = ""


@dataclass(frozen=True, slots=True)
class Kept:
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
    kept: Kept | None = None
    #: Only these documents. Empty for all.
    documents: frozenset[UUID] = frozenset()
    #: Only chunks of documents of these source types. Empty for all.
    source_types: frozenset[str] = frozenset()
    #: Only chunks that hold this kind of content (`retrieval.text.hints`). Empty for all.
    hint: str = ""
    #: Only chunks of at least this quality, 0 to 1.
    least_quality: float = 0.0

    def __bool__(self) -> bool:
        """Return whether it leaves anything out."""
        by_document = self.since or self.until or self.project or self.memory_types or self.documents
        by_content = self.source_types or self.hint or self.least_quality
        return self.kept is not None or bool(by_document or by_content)


@dataclass(frozen=True, slots=True, kw_only=True)
class Routing:
    """What the router made of a question."""

    #: Nothing is to be searched: the question needs no memory.
    skip: bool = False
    #: The type that the question asks for; None where no route is clearly the nearest.
    memory_type: MemoryType | None = None
    project: str = ""
    window: TimeWindow | None = None
    #: The nearest routes' cosine with the question, best first, by name.
    likeness: Mapping[str, float] = field(default_factory=dict)


class DropReason(StrEnum):
    """Why a hit left the ranking; the explorer shows one per dropped document."""

    ACCESS = "access"
    #: Not in the store any more, out of scope, or left out by the request's filter: which of these is nobody's to know.
    STALE = "stale"
    OUTSIDE_WINDOW = "outside_window"
    #: It gave its place in the pool to a chunk of a source type that is there in small numbers.
    SOURCE_QUOTA = "source_quota"
    QUALITY = "quality"
    RERANK_CUT = "rerank_cut"
    BELOW_FLOOR = "below_floor"
    DUPLICATE = "duplicate_of"
    #: It says what better hits say, by MMR.
    REPETITIVE = "repetitive"
    BUDGET = "budget"
    TOP_K = "top_k"


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
    #: Waits for the terms that a thread reads meanwhile, and returns them; None where nobody began.
    terms_ahead: Callable[[], QueryTerms] | None = None
    vector: Vector | None = None
    #: Waits for the projects in scope, which a thread reads meanwhile, and returns them; None where nobody began.
    projects_ahead: Callable[[], Sequence[str]] | None = None
    #: None in presets without a router.
    routing: Routing | None = None
    #: What the request, and a router, leave of the scope's documents; every leg and the reading of the pool keep to it.
    filter: RequestFilter = RequestFilter()
    rankings: Mapping[str, Ranking] = field(default_factory=dict)
    #: The names in the question; None where they were not read ahead.
    asked: "AskedNames | None" = None
    #: Waits for what a thread reads of that meanwhile, and returns it; None where nobody began.
    asked_ahead: "Callable[[], AskedNames] | None" = None
    hits: Ranking = ()
    #: Waits for the pool of before, completed on another thread, and returns it; None where nobody read ahead.
    ahead: Callable[[], Ranking] | None = None
    #: Whether each hit was checked against the scope a second time; before that none is shown.
    access_checked: bool = False
    #: What each signal counted in this query's blend; empty before it.
    weights: Mapping[str, float] = field(default_factory=dict)
    #: The memory type whose weights these are; None where a preset has none by type.
    ranked_as: MemoryType | None = None
    #: The section that is searched for; None in presets without sections.
    section: "SectionState | None" = None
    #: What a language model judged of candidates, in its own words; empty where none did.
    relevance: Mapping[ChunkId, "Relevance"] = field(default_factory=dict)
    #: The candidates by those judgments, or by what stood in for them, before all but the best were dropped.
    judged: Ranking = ()
    #: What stands around the hits that are packed.
    neighbours: tuple["Neighbour", ...] = ()
    #: In the order in which a reader gets them.
    passages: tuple[Passage, ...] = ()
    #: None before it was judged, or when the time was up.
    answerability: Answerability | None = None
    drops: tuple[Drop, ...] = ()
    notes: tuple[Note, ...] = ()
    #: What happened inside of stages, as structured events.
    events: tuple[Mapping[str, object], ...] = ()
    trace: tuple[Span, ...] = ()

    @property
    def degraded(self) -> tuple[str, ...]:
        """The codes of what fell back or was cut short, in order, each once."""
        codes = (note.code for span in self.trace for note in span.notes if note.degraded)
        return tuple(dict.fromkeys(codes))
