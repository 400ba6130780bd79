"""The numbers of the preset `helix`."""

from dataclasses import dataclass, field

from retrieval.engine.config import AnswerabilityConfig, BlendConfig, Bm25Config, FusionConfig, PresetConfig
from retrieval.engine.tunables import Tunables, tunable
from retrieval.engine.types import MemoryType


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteConfig(Tunables):
    """When the router narrows or skips; a route that is not clearly the nearest changes nothing."""

    skip_from: float = tunable(
        0.4, low=0.0, high=1.01, unit="cosine", help="Likeness to a skip route from which nothing is searched."
    )
    skip_margin: float = tunable(
        0.3, low=0.0, high=2.0, unit="cosine", help="Lead that a skip route must have over every other route."
    )
    type_from: float = tunable(
        0.3, low=0.0, high=1.01, unit="cosine", help="Likeness to a memory type's route from which its weights serve."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseConfig(Tunables):
    """The leg of learned sparse vectors, which there is where a sparse model is chosen."""

    depth: int = tunable(
        100, low=0, high=500, unit="hits", help="Hits read from the sparse leg; 0 leaves it out.", costs=True
    )
    exact_below: int = tunable(
        20_000,
        low=0,
        high=1_000_000,
        unit="chunks",
        help="A scope with fewer chunks is compared exactly; a larger one goes through the HNSW index.",
        costs=True,
    )
    ef_search: int = tunable(
        200, low=10, high=1000, unit="candidates", help="HNSW's search list; longer finds more.", costs=True
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphConfig(Tunables):
    """How links lift hits."""

    named: int = tunable(4, low=0, high=20, unit="documents", help="Documents named in the question that get a seat.")
    top_seeds: int = tunable(3, low=0, high=20, unit="hits", help="Best hits whose links are followed too.")
    seed_weight: float = tunable(
        0.8, low=0.0, high=1.0, unit="", help="Weight of the best hit as a seed; a named document weighs 1."
    )
    seed_chunks: int = tunable(
        8,
        low=1,
        high=1000,
        unit="chunks",
        help="Chunks of the seeds that are read for names, the best first: a long document has hundreds.",
        costs=True,
    )
    bridges: int = tunable(8, low=0, high=100, unit="links", help="Links followed from one seed, the best first.")
    hops: int = tunable(1, low=0, high=2, unit="hops", help="How far links are followed.", costs=True)
    max_edges: int = tunable(
        2000, low=10, high=20_000, unit="links", help="Links of the subgraph that one search reads.", costs=True
    )
    damping: float = tunable(
        0.5, low=0.0, high=0.99, unit="", help="Share of PageRank's mass that follows links instead of starting anew."
    )
    hub_links: int = tunable(
        10,
        low=1,
        high=10_000,
        unit="links",
        help="Documents linked from more, and from more than the share, are hubs.",
    )
    hub_share: float = tunable(0.005, low=0.0, high=1.0, unit="", help="Share of the documents in scope for the same.")
    max_mass: float = tunable(
        1.0, low=0.0, high=2.0, unit="", help="The most that links add to a hit, beside a fused score of 0 to 1."
    )
    next_share: float = tunable(
        0.0,
        low=0.0,
        high=1.0,
        unit="",
        help="Share of a best hit's score that goes to the chunks beside it in its section.",
    )
    section_share: float = tunable(
        0.0, low=0.0, high=1.0, unit="", help="Share of a best hit's score that goes to the rest of its section."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalWeights(Tunables):
    """How much each signal of a hit counts.

    Similarity and links are min-max-normalised within the pool. Recency, salience and confidence are shares already:
    only the pool's least is taken from them, as a range below `signals.min_span`, 1, counts as that wide.
    """

    similarity: float = tunable(0.4, low=0.0, high=1.0, unit="", help="Weight of relevance: fused similarity.")
    recency: float = tunable(0.1, low=0.0, high=1.0, unit="", help="Weight of how lately it was last read.")
    salience: float = tunable(0.2, low=0.0, high=1.0, unit="", help="Weight of how much it says of its document.")
    confidence: float = tunable(0.15, low=0.0, high=1.0, unit="", help="Weight of its source's trust.")
    graph: float = tunable(0.15, low=0.0, high=1.0, unit="", help="Weight of what links add.")


def _weights(similarity: float, recency: float, salience: float, confidence: float, graph: float) -> SignalWeights:
    return SignalWeights(similarity=similarity, recency=recency, salience=salience, confidence=confidence, graph=graph)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalsConfig(Tunables):
    """The ranking's weights, one set for each memory type, and how fast recency fades."""

    hourly_decay: float = tunable(
        0.995, low=0.5, high=1.0, unit="", help="What is left of recency after an hour without being read."
    )
    type_share: float = tunable(
        0.6,
        low=0.0,
        high=1.0,
        unit="",
        help="Share of the best ten hits' similarity that one memory type must have for its weights to serve.",
    )
    dense_share: float = tunable(
        0.65, low=0.0, high=1.0, unit="", help="Share of the cosine in similarity; the rest is the full-text score."
    )
    sparse_share: float = tunable(
        0.3,
        low=0.0,
        high=1.0,
        unit="",
        help="Share of the sparse leg's score in similarity, where that leg searches; the others have the rest.",
    )
    min_cosine_span: float = tunable(
        0.1, low=0.0, high=1.0, unit="", help="Cosines of a pool closer together than this are not stretched to 0 to 1."
    )
    written_share: float = tunable(
        0.5,
        low=0.0,
        high=1.0,
        unit="",
        help="Share of similarity for holding the identifiers, paths and numbers of a question as they are written.",
    )
    min_span: float = tunable(
        1.0,
        low=0.0,
        high=1.0,
        unit="",
        help="Recency, salience and confidence that lie closer together than this are not stretched to 0 to 1.",
    )
    episodic: SignalWeights = field(default_factory=lambda: _weights(0.35, 0.30, 0.15, 0.10, 0.10))
    semantic: SignalWeights = field(default_factory=lambda: _weights(0.40, 0.05, 0.20, 0.20, 0.15))
    procedural: SignalWeights = field(default_factory=lambda: _weights(0.45, 0.10, 0.25, 0.15, 0.05))
    decision: SignalWeights = field(default_factory=lambda: _weights(0.35, 0.10, 0.25, 0.25, 0.05))
    code: SignalWeights = field(default_factory=lambda: _weights(0.50, 0.15, 0.10, 0.10, 0.15))

    @property
    def blend(self) -> BlendConfig:
        """How the two legs' signals make similarity: as in the blend of `corecube`, without freshness."""
        return BlendConfig(
            dense=self.dense_share,
            fulltext=1 - self.dense_share,
            freshness=0.0,
            min_cosine_span=self.min_cosine_span,
        )

    @property
    def min_spans(self) -> dict[str, float]:
        """The least span of each signal that has one."""
        return dict.fromkeys(("recency", "salience", "confidence"), self.min_span)

    def of(self, memory_type: MemoryType) -> SignalWeights:
        """Return the weights of a memory type."""
        weights: SignalWeights = getattr(self, memory_type)
        return weights


@dataclass(frozen=True, slots=True, kw_only=True)
class FewPairsConfig(Tunables):
    """What a reranker on this machine may see: a processor takes tens of milliseconds for each pair."""

    candidates: int = tunable(
        0, low=0, high=30, unit="hits", help="Best hits that a local reranker scores; 0 leaves it out.", costs=True
    )
    reserve_ms: int = tunable(
        100, low=0, high=10_000, unit="ms", help="Time kept back from it, so that the search can still end."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NearDuplicatesConfig(Tunables):
    """What counts as said already."""

    min_similarity: float = tunable(
        0.8, low=0.5, high=1.0, unit="", help="Estimated Jaccard similarity from which texts are near duplicates."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DiversifyConfig(Tunables):
    """How relevance is weighed against repetition (MMR)."""

    relevance: float = tunable(
        0.5, low=0.0, high=1.0, unit="", help="MMR's lambda: 1 orders by relevance alone, 0 by being different."
    )
    depth: int = tunable(
        50, low=2, high=200, unit="hits", help="Best hits that are compared with each other.", costs=True
    )
    min_cosine: float = tunable(
        0.94,
        low=0.0,
        high=0.99,
        unit="cosine",
        help="Likeness up to which two passages share a subject and repeat nothing; above it repetition counts 0 to 1.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PackConfig(Tunables):
    """How hits become the numbered context: best first, second last."""

    budget_tokens: int = tunable(4000, low=100, high=200_000, unit="tokens", help="Size of the context.", costs=True)
    max_passages: int = tunable(20, low=1, high=100, unit="passages", help="Passages packed at the most.", costs=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class HelixConfig(PresetConfig):
    """The numbers of the preset `helix`."""

    deadline_ms: int = tunable(500, low=50, high=600_000, unit="ms", help="Time one search may take.", costs=True)
    fusion: FusionConfig = field(default_factory=lambda: FusionConfig(pool=100))
    answerability: AnswerabilityConfig = field(default_factory=lambda: AnswerabilityConfig(sentences=0))
    route: RouteConfig = field(default_factory=RouteConfig)
    bm25: Bm25Config = field(default_factory=Bm25Config)
    sparse: SparseConfig = field(default_factory=SparseConfig)
    graph: GraphConfig = field(default_factory=GraphConfig)
    signals: SignalsConfig = field(default_factory=SignalsConfig)
    rerank: FewPairsConfig = field(default_factory=FewPairsConfig)
    near_duplicates: NearDuplicatesConfig = field(default_factory=NearDuplicatesConfig)
    diversify: DiversifyConfig = field(default_factory=DiversifyConfig)
    pack: PackConfig = field(default_factory=PackConfig)

    @property
    def highest_score(self) -> float:
        """The greatest sum of a memory type's weights."""
        return max(sum(self.signals.of(it).values().values()) for it in MemoryType)

    @property
    def budget(self) -> tuple[str, int]:
        """The tunable that bounds the context, and its tokens."""
        return "pack.budget_tokens", self.pack.budget_tokens
