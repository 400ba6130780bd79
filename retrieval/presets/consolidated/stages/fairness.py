"""Sharing the first places."""

from dataclasses import dataclass, replace
from typing import ClassVar

from retrieval.engine.about import About, BaseStage
from retrieval.engine.state import SearchState
from retrieval.presets.consolidated.evidence.fairness import MERIT, FairnessConfig, fair_order
from retrieval.presets.consolidated.evidence.section_state import SectionState


@dataclass(frozen=True, slots=True)
class BalanceSources(BaseStage):
    """Keep one document or source type from taking every place at the top."""

    config: FairnessConfig

    name: ClassVar[str] = "fairness"
    needs: ClassVar[frozenset[str]] = frozenset({"hits", "facts", "order", "section"})
    about: ClassVar[About] = About(
        "shared out", "Keeps one document, or one source type, from taking all of the first places.", section="fairness"
    )

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state in an order whose first places, as many as the section keeps, are shared."""
        section = state.part(SectionState)
        if section is None:
            return state
        ask = section.ask
        hits = fair_order(state.hits, ask.section.keep, type_of=ask.type_of, config=self.config)
        moved = sum(hit.signals[MERIT] > rank for rank, hit in enumerate(hits, start=1))
        event = {"event": "shared", "places": ask.section.keep, "moved_up": moved}
        return replace(state, hits=hits, events=(*state.events, event))
