"""Balancing the top hits among sources."""

from dataclasses import dataclass, replace
from typing import ClassVar

from retrieval.engine.about import About
from retrieval.engine.state import SearchState
from retrieval.presets.consolidated.evidence.order import MERIT, FairnessConfig, fair_order
from retrieval.presets.consolidated.evidence.section_state import SectionStage, SectionState


@dataclass(frozen=True, slots=True)
class BalanceSources(SectionStage, name="fairness", needs={"hits", "facts", "order", "section"}):
    """Limit the share of one document or source type of the top hits."""

    config: FairnessConfig

    about: ClassVar[About] = About(
        "balanced", "Limits the share of one document, or one source type, of the top hits.", section="fairness"
    )

    def in_section(self, section: SectionState, state: SearchState) -> SearchState:
        """Return the state with the top hits, as many as the section keeps, balanced among sources."""
        ask = section.ask
        hits = fair_order(state.hits, ask.section.keep, type_of=ask.type_of, config=self.config)
        moved = sum(hit.signals[MERIT] > rank for rank, hit in enumerate(hits, start=1))
        event = {"event": "shared", "places": ask.section.keep, "moved_up": moved}
        return replace(state, hits=hits, events=(*state.events, event))
