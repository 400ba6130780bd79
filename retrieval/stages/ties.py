"""Breaking near-ties by trust."""

from dataclasses import dataclass, replace
from typing import ClassVar

from retrieval.engine.about import About, BaseStage
from retrieval.engine.state import SearchState
from retrieval.engine.tunables import Tunables, tunable
from retrieval.ranking.blend import break_ties


@dataclass(frozen=True, slots=True, kw_only=True)
class TieConfig(Tunables, label="Ties"):
    """When scores count as equal."""

    tolerance: float = tunable(
        0.01, low=0.0, high=0.2, help="Maximum difference of scores in a tie. The more trusted source wins."
    )


@dataclass(frozen=True, slots=True)
class BreakTies(BaseStage, name="ties", needs={"hits", "facts", "order", "scope"}):
    """Put the more trusted source first among hits whose scores are nearly equal."""

    config: TieConfig

    about: ClassVar[About] = About(
        "ties", "Puts the more trusted source first among hits whose scores are nearly equal.", section="ties"
    )

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state with hits in their final order."""
        trust = state.scope.trust
        hits = break_ties(state.hits, trust=lambda hit: trust[hit.chunk.connection_id], tolerance=self.config.tolerance)
        return replace(state, hits=hits)
