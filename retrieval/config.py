"""The presets' configuration: one dataclass per stage, bounds and help declared with each number."""

from dataclasses import dataclass, field

from retrieval.tunables import Tunables, tunable


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryConfig(Tunables):
    """How a query is read."""

    retrieval_characters: int = tunable(
        500,
        low=50,
        high=4000,
        unit="characters",
        help="Part of the query that retrieval reads; a model gets all of it.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseConfig(Tunables):
    """The vector leg."""

    depth: int = tunable(100, low=1, high=1000, unit="hits", help="Hits read from the vector leg.")
    exact_below: int = tunable(
        20_000,
        low=0,
        high=1_000_000,
        unit="chunks",
        help="A scope with fewer chunks is scanned exactly; a larger one goes through the HNSW index.",
    )
    ef_search: int = tunable(
        200, low=10, high=1000, unit="candidates", help="HNSW's search list; longer finds more and takes longer."
    )
    oversample: float = tunable(
        2.0,
        low=1.0,
        high=10.0,
        unit="",
        help="The HNSW scan goes on until this many times the depth are found in scope.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FulltextConfig(Tunables):
    """The full-text leg."""

    depth: int = tunable(100, low=1, high=1000, unit="hits", help="Hits read from the full-text leg.")
    relax_below: int = tunable(
        100,
        low=1,
        high=1000,
        unit="hits",
        help="An all-terms match with fewer hits than this is relaxed to any rare term.",
    )
    relax_cap: int = tunable(
        5000,
        low=100,
        high=1_000_000,
        unit="chunks",
        help="Relaxing takes the rarest terms while their summed document frequency stays under this; bounds the time.",
    )
    weight_title: float = tunable(1.0, low=0.0, high=1.0, unit="", help="Weight of a term in the title.")
    weight_heading: float = tunable(0.7, low=0.0, high=1.0, unit="", help="Weight of a term in the heading path.")
    weight_text: float = tunable(0.5, low=0.0, high=1.0, unit="", help="Weight of a term in the text.")

    @property
    def weights(self) -> list[float]:
        """The field weights in PostgreSQL's order: D, C, B, A."""
        return [0.1, self.weight_text, self.weight_heading, self.weight_title]


@dataclass(frozen=True, slots=True, kw_only=True)
class FusionConfig(Tunables):
    """How the legs' rankings become one pool."""

    rank_constant: int = tunable(60, low=1, high=1000, unit="ranks", help="RRF's k; larger flattens ranks.")
    pool: int = tunable(200, low=1, high=2000, unit="hits", help="Fused hits that go on to be blended.")


@dataclass(frozen=True, slots=True, kw_only=True)
class BlendConfig(Tunables):
    """How the pool is ordered: weights of min-max-normalised cosine, full-text relevance, and freshness."""

    dense: float = tunable(0.6, low=0.0, high=1.0, unit="", help="Weight of vector similarity.")
    fulltext: float = tunable(0.3, low=0.0, high=1.0, unit="", help="Weight of full-text relevance.")
    freshness: float = tunable(0.1, low=0.0, high=1.0, unit="", help="Weight of freshness.")
    least_cosine_span: float = tunable(
        0.1,
        low=0.0,
        high=1.0,
        unit="",
        help="Cosines of a pool that lie closer together than this are not stretched to the full weight.",
    )
    tie_tolerance: float = tunable(
        0.01, low=0.0, high=0.2, unit="", help="Scores this close are a tie, which the more trusted source wins."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AssembleConfig(Tunables):
    """How hits become the numbered context."""

    budget_tokens: int = tunable(4000, low=100, high=200_000, unit="tokens", help="Size of the whole context.")


@dataclass(frozen=True, slots=True, kw_only=True)
class PresetConfig(Tunables):
    """A preset's numbers, stage by stage."""

    deadline_ms: int = tunable(2000, low=50, high=600_000, unit="ms", help="Time one search may take.")
    query: QueryConfig = field(default_factory=QueryConfig)
    dense: DenseConfig = field(default_factory=DenseConfig)
    fulltext: FulltextConfig = field(default_factory=FulltextConfig)
    fusion: FusionConfig = field(default_factory=FusionConfig)
    blend: BlendConfig = field(default_factory=BlendConfig)
    assemble: AssembleConfig = field(default_factory=AssembleConfig)
