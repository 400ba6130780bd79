"""The numbers of the preset `contextpack`."""

from dataclasses import dataclass, field

from retrieval.engine.config import BlendConfig, DedupeConfig, FusionConfig, PresetConfig
from retrieval.engine.tunables import Tunables, tunable


@dataclass(frozen=True, slots=True, kw_only=True)
class RelevanceConfig(Tunables):
    """What the language model judges, and how long it may take; which model it is the routing rules say."""

    candidates: int = tunable(
        50, low=1, high=100, unit="hits", help="Hits of the blend that the language model judges.", costs=True
    )
    top: int = tunable(
        15,
        low=1,
        high=100,
        unit="hits",
        help="Best hits that are packed as primary ones, unless fewer are asked for.",
        costs=True,
    )
    characters: int = tunable(
        1200, low=100, high=20_000, unit="characters", help="Part of a candidate that the model is shown.", costs=True
    )
    strict_json: int = tunable(
        1,
        low=0,
        high=1,
        unit="",
        help="1 asks services that can to write by the JSON schema; read strictly either way.",
    )
    attempts: int = tunable(
        3, low=1, high=5, unit="", help="Times that the model is asked for what it left out or got wrong.", costs=True
    )
    timeout_ms: int = tunable(
        20_000, low=100, high=300_000, unit="ms", help="Time that the language model may take in all.", costs=True
    )
    reserve_ms: int = tunable(
        3000,
        low=0,
        high=60_000,
        unit="ms",
        help="Time kept back from it, so that the cross-encoder can still take its place.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighboursConfig(Tunables):
    """What stands around a primary hit and is packed with it."""

    parents: int = tunable(
        1, low=0, high=1, unit="", help="1 takes in the rest of the section, 0 leaves it out.", costs=True
    )
    same_page: int = tunable(
        1,
        low=0,
        high=10,
        unit="chunks",
        help="Chunks on each side of a hit, on its page or in its section.",
        costs=True,
    )
    cross_page: int = tunable(
        2,
        low=0,
        high=20,
        unit="chunks",
        help="Nearest chunks on the page before and the page after, of both together.",
        costs=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextConfig(Tunables):
    """How primary hits and what stands around them become the context."""

    budget_tokens: int = tunable(
        12_000, low=100, high=200_000, unit="tokens", help="Size of the whole context.", costs=True
    )
    min_primary: int = tunable(
        3,
        low=0,
        high=100,
        unit="hits",
        help="Best primary hits that are kept even where they alone exceed the budget.",
        costs=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPackConfig(PresetConfig):
    """The numbers of the preset `contextpack`."""

    deadline_ms: int = tunable(30_000, low=50, high=600_000, unit="ms", help="Time one search may take.", costs=True)
    fusion: FusionConfig = field(default_factory=lambda: FusionConfig(pool=50))
    blend: BlendConfig = field(default_factory=BlendConfig)
    dedupe: DedupeConfig = field(default_factory=DedupeConfig)
    relevance: RelevanceConfig = field(default_factory=RelevanceConfig)
    neighbours: NeighboursConfig = field(default_factory=NeighboursConfig)
    context: ContextConfig = field(default_factory=ContextConfig)

    @property
    def usual_top_k(self) -> int:
        """As many hits as are packed."""
        return self.relevance.top

    @property
    def highest_score(self) -> float:
        """The top of the rubric."""
        return 100.0

    @property
    def budget(self) -> tuple[str, int]:
        """The tunable that bounds the context, and its tokens."""
        return "context.budget_tokens", self.context.budget_tokens
