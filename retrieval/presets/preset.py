"""Presets and their configuration."""

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from corecube.data import read_toml
from corecube.errors import ConfigError
from retrieval.engine.pipeline import Pipeline
from retrieval.engine.tunables import Tunables, costly, tunable
from retrieval.engine.types import ScoreType
from retrieval.ranking.answerability.verdict import AnswerabilityConfig
from retrieval.stages.analyze import QueryConfig
from retrieval.stages.dense import DenseConfig
from retrieval.stages.fulltext import FulltextConfig
from retrieval.stages.fuse import FusionConfig
from retrieval.stages.quality import QualityConfig
from retrieval.stages.resources import Resources

_FORMER_NAMES: Final = read_toml("retrieval.presets", "former_names.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeConfig(Tunables, label="Time"):
    """How the time limit is divided."""

    reserve_share: float = tunable(
        0.15, low=0.05, high=0.5, help="Share of the deadline reserved for reading and packing hits."
    )
    embed_share: float = tunable(
        0.6,
        low=0.1,
        high=0.9,
        help="Share of the legs' time for embedding the query. If it is exceeded, only the keyword leg searches.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PresetConfig(Tunables, label="General"):
    """The numbers that every preset has, stage by stage."""

    former_names: ClassVar[Mapping[str, str]] = _FORMER_NAMES
    packing: ClassVar[str] = ""  #: The section of the stage that packs the context; empty for none.

    deadline_ms: int = costly(2000, low=50, high=600_000, unit="ms", help="Time limit of one search.")
    query: QueryConfig = field(default_factory=QueryConfig)
    dense: DenseConfig = field(default_factory=DenseConfig)
    fulltext: FulltextConfig = field(default_factory=FulltextConfig)
    fusion: FusionConfig = field(default_factory=FusionConfig)
    quality: QualityConfig = field(default_factory=QualityConfig)
    answerability: AnswerabilityConfig = field(default_factory=AnswerabilityConfig)
    time: TimeConfig = field(default_factory=TimeConfig)

    @property
    def soft_share(self) -> float:
        """Share of the deadline after which optional stages are skipped."""
        return 1 - self.time.reserve_share

    @property
    def highest_score(self) -> float:
        """The highest possible final score."""
        return 1.0

    @property
    def default_top_k(self) -> int:
        """Default number of hits."""
        return 10

    @property
    def budget(self) -> tuple[str, int]:
        """The tunable that bounds the context, and its tokens; no name and 0 where nothing is packed."""
        return (f"{self.packing}.budget_tokens", getattr(self, self.packing).budget_tokens) if self.packing else ("", 0)

    @property
    def queued_seconds(self) -> float:
        """Seconds that the tier "async" adds to the time limit."""
        return 0.0

    @property
    def tie_tolerance(self) -> float:
        """Scores this close are a tie."""
        return 0.0

    def ranking_weights(self, names: Iterable[str]) -> Mapping[str, float]:
        """Return the weight of each ranking in the fusion."""
        return dict.fromkeys(names, 1.0)

    def min_score(self, score_type: ScoreType) -> float:  # noqa: ARG002 -- presets differ
        """Return the floor of a score type; -inf for none."""
        return -math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceLine:
    """A line of the document that a preset follows, and what its reference version makes of it."""

    section: str  #: Heading in the document.
    says: str  #: The line in short.
    values: Mapping[str, float] = field(default_factory=dict)  #: Settings by dotted name; none for stages and order.
    note: str = ""  #: What the document leaves open, and where the line is if it is no setting.


@dataclass(frozen=True, slots=True)
class Preset:
    """A way of retrieving: tuned, or a reference version, which is as shipped and has no other versions."""

    name: str
    description: str
    defaults: PresetConfig
    build: Callable[[Any, Resources], Pipeline]
    legs: tuple[str, ...]  #: The legs without optional models; each can search alone.
    lines: tuple[ReferenceLine, ...] = ()  #: The document's, in its order; none for a tuned preset.

    def __post_init__(self) -> None:
        if not self.lines and self.defaults != type(self.defaults)():
            raise ConfigError(f"The defaults of the preset {self.name} differ from those of its configuration class.")

    @property
    def base(self) -> str:
        """The name of the tuned preset: its own, or what precedes the @."""
        return self.name.partition("@")[0]

    def changes(self, config: PresetConfig) -> dict[str, float]:
        """Return the numbers of a configuration that differ from the shipped defaults, by dotted name."""
        defaults = self.defaults.values()
        return {name: value for name, value in config.values().items() if value != defaults[name]}

    def version(self, pipeline: Pipeline, config: PresetConfig) -> str:
        """Return a fingerprint of the stages and of every number: it changes when either does."""
        return hashlib.sha256(f"{pipeline!r} {config}".encode()).hexdigest()[:12]
