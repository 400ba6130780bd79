"""The numbers of the preset `contextpack`."""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, Self

from corecube import env
from corecube.data import read_toml
from retrieval.engine.tunables import TunableFacts, costly
from retrieval.presets.contextpack.judge import RelevanceConfig
from retrieval.presets.contextpack.stages.neighbours import NeighboursConfig
from retrieval.presets.contextpack.stages.pack_context import ContextConfig
from retrieval.presets.preset import PresetConfig
from retrieval.ranking.blend import BlendConfig
from retrieval.stages.dedupe import DedupeConfig
from retrieval.stages.fuse import FusionConfig

_REFERENCE: Final[dict[str, Any]] = read_toml("retrieval.presets.contextpack", "reference.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPackConfig(PresetConfig):
    """The numbers of the preset `contextpack`."""

    packing: ClassVar[str] = "context"

    deadline_ms: int = costly(30_000, low=50, high=600_000, unit="ms", help="Time limit of one search.")
    fusion: FusionConfig = field(default_factory=lambda: FusionConfig(pool=50))
    blend: BlendConfig = field(default_factory=BlendConfig)
    dedupe: DedupeConfig = field(default_factory=DedupeConfig)
    relevance: RelevanceConfig = field(default_factory=RelevanceConfig)
    neighbours: NeighboursConfig = field(default_factory=NeighboursConfig)
    context: ContextConfig = field(default_factory=ContextConfig)

    @classmethod
    def reference(cls) -> Self:
        """Return the settings of the reference version."""
        values = {name: value for line in _REFERENCE["line"] for name, value in line.get("values", {}).items()}
        return cls().with_values(values).with_model(_REFERENCE["model"])

    @classmethod
    def from_env(cls) -> Self:
        """Return the settings of the reference version with those that the environment sets.

        The variables are the document's fields in capitals, such as RETRIEVAL_FINAL_MAX_TOKENS and RERANK_MODEL. Raises
        ImproperlyConfigured, which names the variable, for an invalid value.
        """
        reference = cls.reference()
        facts, values = {it.name: it for it in cls.declared_below()}, reference.values()
        found = {name: _from_env(it, facts[name], values[name]) for it, name in _REFERENCE["environment"].items()}
        return reference.with_values(found).with_model(env.text("RERANK_MODEL", reference.relevance.model))

    def with_model(self, model: str) -> Self:
        """Return the settings with the name of the model that scores; unchanged for an empty one."""
        return replace(self, relevance=replace(self.relevance, model=model)) if model else self

    @property
    def default_top_k(self) -> int:
        """As many hits as are packed."""
        return self.relevance.top

    @property
    def highest_score(self) -> float:
        """The top of the rubric."""
        return 100.0


def _from_env(variable: str, facts: TunableFacts, default: float) -> int:
    if (facts.low, facts.high) == (0, 1):
        return int(env.flag(variable, default=bool(default)))
    return env.integer(variable, int(default), low=int(facts.low), high=int(facts.high))
