"""Breaking near-ties by source type."""

from dataclasses import dataclass, replace
from typing import ClassVar

from retrieval.engine.about import About
from retrieval.engine.state import SearchState
from retrieval.engine.types import Hit
from retrieval.presets.consolidated.evidence.order import PrecedenceConfig, boosts, by_precedence
from retrieval.presets.consolidated.evidence.scoring import Provider
from retrieval.presets.consolidated.evidence.section_state import SectionStage, SectionState


@dataclass(frozen=True, slots=True)
class PreferSources(SectionStage, name="precedence", needs={"hits", "facts", "order", "section"}):
    """Prefer the more trusted source type where scores are nearly equal."""

    config: PrecedenceConfig

    about: ClassVar[About] = About(
        "precedence",
        "Prefers the more trusted source type among hits with nearly equal reranked scores.",
        section="precedence",
    )

    def in_section(self, section: SectionState, state: SearchState) -> SearchState:
        """Return the state ordered by score plus boost; hits without a score stay last."""
        ask = section.ask
        precedence = ask.section_set.precedence
        tables = {
            str(provider): boosts(precedence, is_fallback=provider is Provider.SEMANTIC_BM25, config=self.config)
            for provider in (Provider.CROSS_ENCODER, Provider.SEMANTIC_BM25)
        }

        def boost_of(hit: Hit) -> float | None:
            table = tables.get(hit.provider)
            return None if table is None else table.get(ask.type_of(hit), 0.0)

        return replace(state, hits=by_precedence(state.hits, boost_of))
