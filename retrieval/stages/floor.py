"""Dropping hits with low scores."""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from retrieval.engine.about import About, BaseStage
from retrieval.engine.state import Drop, DropReason, SearchState
from retrieval.engine.tunables import Tunables, fraction, tunable
from retrieval.engine.types import Hit, ScoreType


@dataclass(frozen=True, slots=True, kw_only=True)
class FloorConfig(Tunables, label="Minimum scores"):
    """Minimum score of a hit for each type of final score. The lowest possible value drops none."""

    blend: float = fraction(0.0, help="Minimum blended score.")
    logit: float = tunable(-20.0, low=-20.0, high=20.0, help="Minimum score of a local cross-encoder.")
    relevance: float = tunable(-1.0, low=-1.0, high=1.0, help="Minimum score of a reranking service.")
    maxsim: float = tunable(-1.0, low=-1.0, high=1.5, help="Minimum blended score with late interaction.")

    def minimum(self, score_type: ScoreType) -> float:
        """Return the floor of a score type; -inf at its lowest bound, and for a type that no ranking ends with."""
        facts = next((it for it in self.declared() if it.name == score_type), None)
        floor: float = getattr(self, facts.name) if facts else -math.inf
        return floor if facts and floor > facts.low else -math.inf


def _floor_fact(hit: Hit, config: Any) -> str:  # noqa: ANN401 -- any preset's configuration
    floor = config.min_score(hit.score_type)
    return f"{hit.score_type} {hit.score:.3f}, " + (f"floor {floor:.3f}" if floor > -math.inf else "no floor")


@dataclass(frozen=True, slots=True)
class Floor(BaseStage, name="floor", needs={"hits", "order"}):
    """Drop hits below the minimum score of their score's type: a fallback to another score has its own floor."""

    config: FloorConfig

    about: ClassVar[About] = About(
        "floor",
        "Drops hits below the minimum for their type of score.",
        section="floor",
        drops=(DropReason.BELOW_FLOOR,),
        fact=_floor_fact,
    )

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state without hits under their floor."""
        hits, drops = [], []
        floors = {it: self.config.minimum(it) for it in {hit.score_type for hit in state.hits}}
        for hit in state.hits:
            floor = floors[hit.score_type]
            if hit.score >= floor:
                hits.append(hit)
            else:
                detail = f"{hit.score_type} {hit.score:.3f}, floor {floor:.3f}"
                numbers = {"score": hit.score, "floor": floor}
                drops.append(Drop(hit.chunk_id, DropReason.BELOW_FLOOR, detail, numbers))
        return replace(state, hits=tuple(hits), drops=(*state.drops, *drops))
