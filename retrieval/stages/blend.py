"""Ordering the pool by weighted signals."""

from dataclasses import dataclass, replace
from typing import ClassVar

from retrieval.engine.about import About, BaseStage, score_fact
from retrieval.engine.state import Note, SearchState
from retrieval.ranking.blend import BlendConfig, blend, query_weights


@dataclass(frozen=True, slots=True)
class Blend(BaseStage, name="blend", needs={"hits", "facts", "freshness"}, gives={"order"}):
    """Order the pool by weighted cosine, full-text relevance and freshness."""

    config: BlendConfig

    about: ClassVar[About] = About(
        "blended", "Orders the pool by weighted similarity, full text and freshness.", section="blend", fact=score_fact
    )

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state with its hits blended, best first, and the weights that this query got."""
        weights = query_weights(state.hits, self.config, ran=state.rankings)
        hits = blend(state.hits, weights, self.config)
        state = replace(state, hits=hits, weights={**weights.legs, "freshness": self.config.freshness})
        if weights.standout is None:
            return state
        text = (
            f"The best cosine leads the mean of the best ten by {weights.standout:.3f}:"
            f" vectors weigh {weights.dense:.2f}, full text {weights.fulltext:.2f}."
        )
        return state.noted(Note("blend_weights", text))
