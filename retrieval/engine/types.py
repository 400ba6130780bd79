"""Terms, chunks, hits, passages and answerability. Frozen and free of Django."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final, NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from retrieval.engine.quick import quick

#: The signal of a hit that the model of another index found: the cosine of unrelated texts by that model.
NOISE: Final = "cosine_noise"
PRIMARY: Final = "primary"  #: The role of hits, where their neighbours are packed too.
Vector = NDArray[np.float32]  #: A unit vector, shape (dim,).
CountTokens = Callable[[Sequence[str]], Sequence[int]]  #: Returns the number of tokens of each text.


class ChunkId(NamedTuple):
    """A chunk's key; its order breaks ties wherever scores are equal."""

    document_id: UUID
    ordinal: int

    def __str__(self) -> str:
        return f"{self.document_id}:{self.ordinal}"


#: The question's cosine with each run of a chunk's text that can be quoted; chunks without stored vectors are absent.
RunCosines = Mapping[ChunkId, Mapping[range, float]]


class ScoreType(StrEnum):
    """What a score means. A threshold belongs to one type."""

    COSINE = "cosine"
    FULLTEXT = "fulltext"
    BM25 = "bm25"
    SPARSE = "sparse"  #: The inner product of learned sparse vectors, above 0.
    RRF = "rrf"
    BLEND = "blend"
    LOGIT = "logit"  #: A local cross-encoder's raw output, unbounded; the logistic function maps it to 0 to 1.
    RELEVANCE = "relevance"  #: A reranking service's own score, -1 to 1 and mostly from 0.
    #: The blend plus half of the late interaction, min-max-normalised over the reranked hits: 0 to 1.5.
    MAXSIM = "maxsim"
    #: The weighted sum of a memory type's signals, each min-max-normalised: 0 to the sum of its weights.
    SIGNALS = "signals"
    RUBRIC = "rubric"  #: A language model's score by the rubric, 0 to 100.
    MAPPED = "mapped"  #: A reranker's score, or the blend's, mapped to the rubric's scale.


class MemoryType(StrEnum):
    """The type of a remembered item; each has its own ranking weights."""

    EPISODIC = "episodic"
    SEMANTIC = "semantic"
    PROCEDURAL = "procedural"
    DECISION = "decision"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class Term:
    """A lexeme of the query and how rare it is in scope."""

    lexeme: str
    document_frequency: int  #: Chunks in scope that contain it.
    idf: float  #: ln(1 + (N - df + 0.5) / (df + 0.5)), at least 0.
    #: Position of its word in the query, from 1: with several languages one word can be several terms.
    place: int = 0


@dataclass(frozen=True, slots=True)
class Correction:
    """A misspelled word of the query that occurs nowhere in scope, and the word that it is taken for."""

    typed: str
    meant: str


@dataclass(frozen=True, slots=True)
class QueryTerms:
    """The query as full-text search reads it."""

    terms: tuple[Term, ...] = ()
    corpus_size: int = 0  #: Chunks in scope.
    #: The tsquery that demands every term, with the query's quotes, minus and OR; empty when nothing is searchable.
    all_terms: str = ""
    has_operators: bool = False  #: Whether the query uses quotes, minus or OR, which are never relaxed.
    at_most: int = 0  #: Upper bound of the chunks in scope that match `all_terms`.
    language: str = "english"  #: Text search configuration, of those in scope, that the query is taken to be in.
    #: Lexemes among the terms that replace a word that occurs nowhere: parts of a compound, or one of which it is part.
    compounds: frozenset[str] = frozenset()
    corrections: tuple[Correction, ...] = ()  #: The terms are those of the query with these.


@quick
@dataclass(frozen=True, slots=True)
class TermMatch:
    """A query lexeme in a chunk, and its part of the full-text score by terms."""

    lexeme: str
    idf: float
    share: float
    weight: str  #: The field with the highest weight that contains it: A title, B heading path, C text.


@quick
@dataclass(frozen=True, slots=True)
class ChunkFacts:
    """The stored facts of a chunk: read once for the entire pool, with the scope applied again."""

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
    quality: float = 1.0  #: Share of content versus boilerplate, 0 to 1, as ingestion measured it.
    #: Deductions from the quality, by part: {"navigation": 0.6, "repeated": 0.3}; empty for plain content.
    quality_parts: Mapping[str, float] = field(default_factory=dict)
    #: 64-bit fingerprint of its words, signed: near-identical texts differ in few bits. 0 when there is none.
    simhash: int = 0
    row_start: int | None = None  #: First and last row or line, counted from 1; None for formats without them.
    row_end: int | None = None
    salience: float | None = None  #: How representative it is of its document, 0 to 1; None until its sync has ended.
    minhash: bytes = b""  #: Signature of its words (`retrieval.text.fingerprints`); empty for a text without words.
    memory_kind: str = ""  #: The type of a remembered item; empty for other documents.
    status: str = ""  #: What its document's metadata state about its validity, such as "superseded"; empty if nothing.
    is_confirmed: bool = False  #: Whether a person confirmed it: when it was remembered, or by a judgment.
    accessed_at: datetime | None = None  #: When its document was last read; None if never.
    #: When it was last read before the day (UTC) of `accessed_at`; None if never.
    accessed_before: datetime | None = None
    vector: bytes = b""  #: Its vector in the searched index as big-endian half floats; empty if not read.


@dataclass(frozen=True, slots=True)
class Lift:
    """Why the graph lifted a hit, and by how much."""

    #: "named": the question names its document; "link": a seed's text names it; "shared_name": both share a rare name;
    #: "hyperlink": a seed links to it; "triple": a language model extracted it from a seed; "next": adjacent to a
    #: seed; "section": in the seed's section.
    kind: str
    amount: float
    name: str = ""
    source: ChunkId | None = None  #: The seed whose link it is; None where the question names it.
    sentence: str = ""  #: The sentence of the seed with the name; empty where the question names it.


@quick
@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk in a ranking, with its evidence.

    `signals` are raw values by name (cosine, fulltext, rrf, freshness); one that was not computed is
    absent, never 0. `ranks` are the ranks (from 1) by leg; legs that did not find the chunk are absent.
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
    lifts: tuple[Lift, ...] = ()  #: Lifts by links and names, highest first.
    #: The last scorer, in presets with several rerankers ("cross_encoder", "semantic_bm25"); else empty.
    provider: str = ""

    def scored(self, score: float, score_type: ScoreType, contributions: Mapping[str, float]) -> "Hit":
        """Return the hit with another score and its parts; four times as fast as `dataclasses.replace`."""
        found = (self.matches, self.facts, self.lifts, self.provider)
        return Hit(self.chunk_id, score, score_type, self.ranks, self.signals, contributions, *found)

    def with_signals(self, signals: Mapping[str, float]) -> "Hit":
        """Return the hit with other signals."""
        score = (self.chunk_id, self.score, self.score_type, self.ranks)
        return Hit(*score, signals, self.contributions, self.matches, self.facts, self.lifts, self.provider)

    def known(self, facts: ChunkFacts, signals: Mapping[str, float], matches: tuple[TermMatch, ...]) -> "Hit":
        """Return the hit with its stored facts."""
        score = (self.chunk_id, self.score, self.score_type, self.ranks)
        return Hit(*score, signals, self.contributions, matches, facts, self.lifts, self.provider)

    @property
    def chunk(self) -> ChunkFacts:
        """The chunk's facts; raises ValueError before completion."""
        if self.facts is None:
            raise ValueError(f"{self.chunk_id} is not completed yet.")
        return self.facts


Ranking = Sequence[Hit]  #: The ordered hits of one leg, best first.


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk as packed for a reader, under its citation number; [1] is the best, wherever it is packed."""

    number: int  #: The N of [N], from 1.
    hit: Hit
    header: str  #: "### [1] Title — Source — Compartment", the line above the text.
    token_count: int  #: Tokens of header and text together; in `contextpack` with the break behind them too.
    role: str = ""  #: Its role: "primary", "parent", "sibling" or "cross_page"; empty where all are hits.

    @property
    def is_hit(self) -> bool:
        """Whether it is a hit, and not a neighbour of one."""
        return self.role in {"", PRIMARY}

    @property
    def score(self) -> float | None:
        """The hit's score; None for a neighbour."""
        return self.hit.score if self.is_hit else None


class Verdict(StrEnum):
    """Whether the passages answer the question."""

    ANSWERABLE = "answerable"
    PARTIAL = "partial"
    NOT_ANSWERABLE = "not_answerable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answerability:
    """The probability that the packed passages answer the question, from raw signals."""

    verdict: Verdict
    confidence: float  #: Probability that the passages hold the answer, 0 to 1.
    is_calibrated: bool  #: Whether the model was fitted on judgments of this installation.
    intercept: float = 0.0  #: The log-odds before any signal is added.
    #: The raw signals by name, and what each added to the log-odds.
    signals: Mapping[str, float] = field(default_factory=dict)
    contributions: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""  #: Stable code of what is missing or contradictory; empty for a plain answer.
    explanation: str = ""


@dataclass(frozen=True, slots=True)
class TokenCounter:
    """Counts tokens with the tokenizer of a model."""

    name: str
    count: CountTokens
