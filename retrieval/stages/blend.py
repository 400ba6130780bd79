"""Ordering the pool."""

from dataclasses import dataclass, replace
from typing import ClassVar

from retrieval.engine.about import About, score_fact
from retrieval.engine.state import Note, SearchState
from retrieval.ranking.blend import BlendConfig, Weights, blend, query_weights


@dataclass(frozen=True, slots=True)
class Blend:
    """Order the pool by weighted cosine, full-text relevance and freshness."""

    config: BlendConfig

    name: ClassVar[str] = "blend"
    needs: ClassVar[frozenset[str]] = frozenset({"hits", "facts", "freshness"})
    gives: ClassVar[frozenset[str]] = frozenset({"order"})
    optional: ClassVar[bool] = False
    about: ClassVar[About] = About(
        "blended",
        "Orders the pool by weighted similarity, full text and freshness.",
        section="blend",
        fact=score_fact,
    )

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state with its hits blended, best first, and the weights that this query got."""
        weights = query_weights(state.hits, self.config, ran=state.rankings)
        hits = blend(state.hits, weights, self.config)
        counted = {**weights.legs, "freshness": self.config.freshness}
        return replace(state, hits=hits, weights=counted, notes=(*state.notes, *_note(weights)))


def _note(weights: Weights) -> tuple[Note, ...]:
    if weights.standout is None:
        return ()
    text = (
        f"The best cosine leads the mean of the best ten by {weights.standout:.3f}:"
        f" vectors count {weights.dense:.2f}, full text {weights.fulltext:.2f}."
    )
    return (Note("blend_weights", text),)
