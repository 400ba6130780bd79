"""The engine's data: frozen, free of Django, passed from stage to stage."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from corecube.scope import AccessScope
from retrieval.deadline import Deadline

if TYPE_CHECKING:
    from retrieval.contextpack.types import Neighbour, Relevance
    from retrieval.evidence.section_state import SectionState
    from retrieval.graph.asked import AskedNames

#: Why hits themselves are packed, where what stands around them is too.
PRIMARY: Final = "primary"
#: A unit vector, shape (dim,).
Vector = NDArray[np.float32]


class ChunkId(NamedTuple):
    """A chunk's key; its order breaks ties wherever scores are equal."""

    document_id: UUID
    ordinal: int

    def __str__(self) -> str:
        return f"{self.document_id}:{self.ordinal}"


class ScoreType(StrEnum):
    """What a score means. A threshold belongs to one type."""

    COSINE = "cosine"
    FULLTEXT = "fulltext"
    BM25 = "bm25"
    #: The inner product of learned sparse vectors, above 0.
    SPARSE = "sparse"
    RRF = "rrf"
    BLEND = "blend"
    #: A local cross-encoder's raw output, unbounded; the logistic function makes a share of it.
    LOGIT = "logit"
    #: A reranking service's own score, -1 to 1 and mostly from 0.
    RELEVANCE = "relevance"
    #: The blend plus half of the late interaction, min-max-normalised over the reranked hits: 0 to 1.5.
    MAXSIM = "maxsim"
    #: The weighted sum of a memory type's signals, each min-max-normalised: 0 to the sum of its weights.
    SIGNALS = "signals"
    #: What a language model judged by the rubric, 0 to 100.
    RUBRIC = "rubric"
    #: A reranker's score, or the blend's, on the rubric's scale: nobody judged by the rubric.
    MAPPED = "mapped"


class MemoryType(StrEnum):
    """What kind of thing a document remembers; each has ranking weights of its own."""

    EPISODIC = "episodic"
    SEMANTIC = "semantic"
    PROCEDURAL = "procedural"
    DECISION = "decision"
    CODE = "code"


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
class Term:
    """A lexeme of the query and how rare it is in scope."""

    lexeme: str
    #: Chunks in scope that hold it.
    document_frequency: int
    #: ln(1 + (N - df + 0.5) / (df + 0.5)), at least 0.
    idf: float
    #: Where its word stands in the query, from 1: in a scope of several languages one word can be several terms.
    place: int = 0


@dataclass(frozen=True, slots=True)
class QueryTerms:
    """The query as full-text search reads it."""

    terms: tuple[Term, ...] = ()
    #: Chunks in scope.
    corpus_size: int = 0
    #: The tsquery that demands every term, with the query's quotes, minus and OR; empty when nothing is searchable.
    all_terms: str = ""
    #: Whether the query uses quotes, minus or OR, which state an intent that is never relaxed.
    has_operators: bool = False
    #: No more chunks in scope than this can match `all_terms`.
    at_most: int = 0


@dataclass(frozen=True, slots=True)
class TermMatch:
    """A query lexeme that a chunk holds, and what it added to the full-text score."""

    lexeme: str
    idf: float
    share: float
    #: The heaviest field that holds it: A title, B heading path, C text.
    weight: str


@dataclass(frozen=True, slots=True)
class ChunkFacts:
    """What PostgreSQL knows of a chunk: read once for the whole pool, with the scope applied again."""

    connection_id: int
    title: str
    uri: str
    source_type: str
    heading_path: tuple[str, ...]
    text: str
    token_count: int
    content_hash: str
    page_start: int | None
    page_end: int | None
    synced_at: datetime
    modified_at: datetime | None
    #: How much of it is content and not boilerplate, 0 to 1, as ingestion judged it.
    quality: float = 1.0
    #: What took from the quality, by part: {"navigation": 0.6, "repeated": 0.3}; empty for plain content.
    quality_parts: Mapping[str, float] = field(default_factory=dict)
    #: 64-bit fingerprint of its words, signed: near-identical texts differ in few bits. 0 when there is none.
    simhash: int = 0
    #: First and last row or line, counted from 1; None where its format has none worth citing.
    row_start: int | None = None
    row_end: int | None = None
    #: How much it says of what its document is about, 0 to 1; None until its sync has ended.
    salience: float | None = None
    #: Signature of its words (`retrieval.minhash`); empty for a text without words.
    minhash: bytes = b""
    #: What an agent remembered it as; empty for every other document.
    memory_kind: str = ""
    #: Whether a person confirmed it: said so when it was remembered, or judged the passage to answer a question.
    is_confirmed: bool = False
    #: When its document was last read by somebody; None while nobody has.
    accessed_at: datetime | None = None
    #: When it was last read before the day (UTC) of `accessed_at`; None while it was not.
    accessed_before: datetime | None = None
    #: Its vector in the index that is searched, as half floats, the high byte first; empty where nobody compares it.
    vector: bytes = b""


@dataclass(frozen=True, slots=True)
class Lift:
    """Why the graph lifted a hit, with what it added to the fused score."""

    #: "named": the question names its document; "link": a seed's text names it; "shared_name": both hold a rare name;
    #: "hyperlink": a seed's author links to it; "triple": a language model read that in a seed; "next": it stands
    #: beside a seed; "section": in the seed's section.
    kind: str
    amount: float
    #: The name that was found, as it stands in the text.
    name: str = ""
    #: The seed whose link it is; None where the question names it.
    source: ChunkId | None = None
    #: The sentence of the seed that holds the name; empty where the question names it.
    sentence: str = ""


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk in a ranking, with everything that speaks for it.

    `signals` are raw values by name (cosine, fulltext, rrf, freshness); one that was not computed is
    absent, never 0. `ranks` say at which place (from 1) a leg found the chunk; a leg that did not is absent.
    `contributions` are the parts of a score and sum to `score`; a reranker whose order is final has the only part,
    "rerank". Reranked hits keep the blend's score among their signals, as "blend".
    """

    chunk_id: ChunkId
    score: float
    score_type: ScoreType
    ranks: Mapping[str, int] = field(default_factory=dict)
    signals: Mapping[str, float] = field(default_factory=dict)
    contributions: Mapping[str, float] = field(default_factory=dict)
    matches: tuple[TermMatch, ...] = ()
    facts: ChunkFacts | None = None
    #: What links and names added to it, the most first.
    lifts: tuple[Lift, ...] = ()
    #: What scored it last, in presets with more than one reranker ("cross_encoder", "semantic_bm25"); else empty.
    provider: str = ""

    def scored(self, score: float, score_type: ScoreType, contributions: Mapping[str, float]) -> "Hit":
        """Return the hit with another score and its parts; `dataclasses.replace` takes four times as long."""
        found = (self.matches, self.facts, self.lifts, self.provider)
        return Hit(self.chunk_id, score, score_type, self.ranks, self.signals, contributions, *found)

    def with_signals(self, signals: Mapping[str, float]) -> "Hit":
        """Return the hit with other signals."""
        score = (self.chunk_id, self.score, self.score_type, self.ranks)
        return Hit(*score, signals, self.contributions, self.matches, self.facts, self.lifts, self.provider)

    def known(self, facts: ChunkFacts, signals: Mapping[str, float], matches: tuple[TermMatch, ...]) -> "Hit":
        """Return the hit with what the store knows of it."""
        score = (self.chunk_id, self.score, self.score_type, self.ranks)
        return Hit(*score, signals, self.contributions, matches, facts, self.lifts, self.provider)

    @property
    def chunk(self) -> ChunkFacts:
        """The chunk's facts; raises ValueError before the pool was completed."""
        if self.facts is None:
            message = f"{self.chunk_id} has not been read from the store yet."
            raise ValueError(message)
        return self.facts


#: The ordered hits of one leg, best first.
Ranking = Sequence[Hit]


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk as packed for a reader, under its citation number; [1] is the best, wherever it is packed."""

    #: The N of [N], from 1.
    number: int
    hit: Hit
    #: "### [1] Title — Source — Compartment", the line above the text.
    header: str
    #: Tokens of header and text together; in `contextpack` with the break behind them too.
    token_count: int
    #: Why it was packed: "primary", "parent", "sibling" or "cross_page"; empty where all are hits.
    role: str = ""

    @property
    def is_hit(self) -> bool:
        """Whether it was found itself, and is not packed for what stands beside it."""
        return self.role in {"", PRIMARY}

    @property
    def score(self) -> float | None:
        """The hit's score; None for what stands around a hit and was never scored."""
        return self.hit.score if self.is_hit else None


class Verdict(StrEnum):
    """Whether the passages answer the question."""

    ANSWERABLE = "answerable"
    PARTIAL = "partial"
    NOT_ANSWERABLE = "not_answerable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answerability:
    """How likely the packed passages answer the question, from raw signals: never from RRF or a bare cosine."""

    verdict: Verdict
    #: Probability that the passages hold the answer, 0 to 1.
    confidence: float
    #: Whether the confidence was fitted on judged questions of this installation.
    is_calibrated: bool
    #: The raw signals by name, and what each added to the log-odds.
    signals: Mapping[str, float] = field(default_factory=dict)
    contributions: Mapping[str, float] = field(default_factory=dict)
    #: Stable word for why it is not answerable; empty when it is.
    reason: str = ""
    #: One sentence with the facts behind the reason; empty when it is answerable.
    explanation: str = ""


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
    #: Only chunks that hold this kind of content (`retrieval.ingest.hints`). Empty for all.
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
    terms: QueryTerms = QueryTerms()
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
