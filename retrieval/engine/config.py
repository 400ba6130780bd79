"""The presets' configuration: one dataclass per stage, bounds and help declared with each number."""

import math
from dataclasses import dataclass, field

from retrieval.engine.tunables import Tunables, tunable
from retrieval.engine.types import ScoreType


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryConfig(Tunables):
    """How a query is read."""

    retrieval_characters: int = tunable(
        500,
        low=50,
        high=4000,
        unit="characters",
        help="Part of the query that retrieval reads; a model gets all of it.",
        costs=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseConfig(Tunables):
    """The vector leg."""

    depth: int = tunable(100, low=1, high=1000, unit="hits", help="Hits read from the vector leg.", costs=True)
    exact_below: int = tunable(
        50_000,
        low=0,
        high=1_000_000,
        unit="chunks",
        help="A scope with fewer chunks is scanned exactly; a larger one goes through the HNSW index.",
        costs=True,
    )
    ef_search: int = tunable(
        200,
        low=10,
        high=1000,
        unit="candidates",
        help="HNSW's search list; longer finds more and takes longer.",
        costs=True,
    )
    oversample: float = tunable(
        2.0,
        low=1.0,
        high=10.0,
        unit="",
        help="The HNSW scan goes on until this many times the depth are found in scope.",
        costs=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FulltextConfig(Tunables):
    """The full-text leg."""

    depth: int = tunable(100, low=1, high=1000, unit="hits", help="Hits read from the full-text leg.", costs=True)
    relax_below: int = tunable(
        100,
        low=1,
        high=1000,
        unit="hits",
        help="An all-terms match with fewer hits than this is relaxed to any rare term.",
        costs=True,
    )
    relax_cap: int = tunable(
        5000,
        low=100,
        high=1_000_000,
        unit="chunks",
        help="Relaxing takes the rarest terms while their summed document frequency stays under this; bounds the time.",
        costs=True,
    )
    max_matches: int = tunable(
        10_000,
        low=1,
        high=1_000_000,
        unit="chunks",
        help="Matches that are scored; of a query that matches more, a part is ranked. Bounds the time.",
        costs=True,
    )
    weight_title: float = tunable(1.0, low=0.0, high=1.0, unit="", help="Weight of a term in the title.")
    weight_heading: float = tunable(0.7, low=0.0, high=1.0, unit="", help="Weight of a term in the heading path.")
    weight_text: float = tunable(0.5, low=0.0, high=1.0, unit="", help="Weight of a term in the text.")
    saturation: float = tunable(
        0.2,
        low=0.001,
        high=10.0,
        unit="",
        help="Rank at which a term gives half of its idf; smaller lets the first occurrence count for more.",
    )

    @property
    def weights(self) -> list[float]:
        """The field weights in PostgreSQL's order: D, C, B, A."""
        return [0.1, self.weight_text, self.weight_heading, self.weight_title]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bm25Config(Tunables):
    """The BM25 leg."""

    depth: int = tunable(100, low=1, high=1000, unit="hits", help="Hits read from the BM25 leg.", costs=True)
    weight_title: float = tunable(0.4, low=0.0, high=10.0, unit="", help="What a match in the title counts beside it.")
    weight_heading: float = tunable(
        0.3, low=0.0, high=10.0, unit="", help="What one in the heading path counts beside it."
    )
    weight_text: float = tunable(
        1.0, low=0.0, high=10.0, unit="", help="Weight of a match in the chunk: its text, or title and headings."
    )
    weight_questions: float = tunable(
        0.3, low=0.0, high=10.0, unit="", help="Weight of a match in the questions that a model wrote for the chunk."
    )
    weight_exact: float = tunable(
        0.5,
        low=0.0,
        high=10.0,
        unit="",
        help="Weight of a name, path or version that stands there as it was asked for.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FusionConfig(Tunables):
    """How the legs' rankings become one pool."""

    rank_constant: int = tunable(60, low=1, high=1000, unit="ranks", help="RRF's k; larger flattens ranks.")
    pool: int = tunable(160, low=1, high=2000, unit="hits", help="Fused hits that go on to be blended.", costs=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlendConfig(Tunables):
    """How the pool is ordered: weights of min-max-normalised cosine, full-text relevance, and freshness."""

    dense: float = tunable(0.6, low=0.0, high=1.0, unit="", help="Weight of vector similarity.")
    fulltext: float = tunable(0.3, low=0.0, high=1.0, unit="", help="Weight of full-text relevance.")
    freshness: float = tunable(0.1, low=0.0, high=1.0, unit="", help="Weight of freshness.")
    min_cosine_span: float = tunable(
        0.1,
        low=0.0,
        high=1.0,
        unit="",
        help="Cosines of a pool that lie closer together than this are not stretched to the full weight.",
    )
    evidence_shift: float = tunable(
        0.33,
        low=0.0,
        high=1.0,
        unit="",
        help="Share of the full-text weight that goes to the vectors where one of them stands out; 0 fixes both.",
    )
    typical_standout: float = tunable(
        0.06,
        low=0.001,
        high=1.0,
        unit="cosine",
        help="Lead of the best cosine over the mean of the best ten up to which the weights stay as they are.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityConfig(Tunables):
    """What counts as boilerplate."""

    minimum: float = tunable(
        0.3, low=0.0, high=1.0, unit="", help="Chunks whose quality is below this are dropped; 0 keeps all."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankConfig(Tunables):
    """What the cross-encoder sees, and how long it may take."""

    candidates: int = tunable(
        30, low=1, high=200, unit="hits", help="Hits of the blend that the reranker scores.", costs=True
    )
    reserve_ms: int = tunable(
        100, low=0, high=10_000, unit="ms", help="Time kept back from the reranker, so that the search can still end."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FloorConfig(Tunables):
    """The least score a hit must have, one for each type of final score; the lowest bound keeps all."""

    blend: float = tunable(0.0, low=0.0, high=1.0, unit="", help="Least blended score.")
    logit: float = tunable(-20.0, low=-20.0, high=20.0, unit="", help="Least output of a local cross-encoder.")
    relevance: float = tunable(-1.0, low=-1.0, high=1.0, unit="", help="Least score from a reranking service.")
    maxsim: float = tunable(-1.0, low=-1.0, high=1.5, unit="", help="Least blended score with late interaction.")

    def minimum(self, score_type: ScoreType) -> float:
        """Return the floor of a score type; -inf at its lowest bound, and for a type that no ranking ends with."""
        facts = next((it for it in self.declared() if it.name == score_type), None)
        floor: float = getattr(self, facts.name) if facts else -math.inf
        return floor if facts and floor > facts.low else -math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class TieConfig(Tunables):
    """When scores count as equal."""

    tolerance: float = tunable(
        0.01, low=0.0, high=0.2, unit="", help="Scores this close are a tie, which the more trusted source wins."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DedupeConfig(Tunables):
    """What counts as the same text."""

    min_similarity: float = tunable(
        0.9, low=0.5, high=1.0, unit="", help="Texts that share this much of their words in order are duplicates."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerabilityConfig(Tunables):
    """When a question counts as answered by its passages."""

    answerable_from: float = tunable(
        0.6, low=0.0, high=1.0, unit="", help="From this confidence on a question is answerable."
    )
    partial_from: float = tunable(
        0.3,
        low=0.0,
        high=1.0,
        unit="",
        help="From this confidence on it is partly so.",
        at_most="answerable_from",
    )
    sentences: int = tunable(
        2,
        low=0,
        high=5,
        unit="sentences",
        help="Best sentences of the passages that are compared with the question by the encoder; 0 for none.",
        costs=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AssembleConfig(Tunables):
    """How hits become the numbered context."""

    budget_tokens: int = tunable(
        4000, low=100, high=200_000, unit="tokens", help="Size of the whole context.", costs=True
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeConfig(Tunables):
    """How a search shares its time."""

    reserve_share: float = tunable(
        0.15,
        low=0.05,
        high=0.5,
        unit="",
        help="Share of the deadline reserved for reading and packing hits; no leg and no reranker may use it.",
    )
    embed_share: float = tunable(
        0.6,
        low=0.1,
        high=0.9,
        unit="",
        help="Share of the legs' time that embedding the query may take; without a vector only words are searched.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PresetConfig(Tunables):
    """The numbers that every preset has, stage by stage."""

    deadline_ms: int = tunable(2000, low=50, high=600_000, unit="ms", help="Time one search may take.", costs=True)
    query: QueryConfig = field(default_factory=QueryConfig)
    dense: DenseConfig = field(default_factory=DenseConfig)
    fulltext: FulltextConfig = field(default_factory=FulltextConfig)
    fusion: FusionConfig = field(default_factory=FusionConfig)
    quality: QualityConfig = field(default_factory=QualityConfig)
    answerability: AnswerabilityConfig = field(default_factory=AnswerabilityConfig)
    time: TimeConfig = field(default_factory=TimeConfig)

    @property
    def soft_share(self) -> float:
        """Share of the deadline after which stages that a search can do without are skipped."""
        return 1 - self.time.reserve_share

    @property
    def highest_score(self) -> float:
        """The highest final score that there can be."""
        return 1.0

    @property
    def usual_top_k(self) -> int:
        """Hits wanted where nobody says how many."""
        return 10

    @property
    def budget(self) -> tuple[str, int]:
        """The tunable that bounds the context, and its tokens; no name and 0 where nothing is packed."""
        return "", 0

    @property
    def tie_tolerance(self) -> float:
        """Scores this close are a tie."""
        return 0.0

    def min_score(self, score_type: ScoreType) -> float:  # noqa: ARG002 -- presets differ
        """Return the floor of a score type; -inf for none."""
        return -math.inf
