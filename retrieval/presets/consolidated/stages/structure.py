"""Routing by headings."""

from dataclasses import dataclass, replace
from typing import ClassVar, Final

from retrieval.engine.about import About, StageGroup
from retrieval.engine.state import Note, SearchState
from retrieval.engine.tunables import Tunables, tunable
from retrieval.errors import SearchTimeoutError
from retrieval.index.lexemes import rarest
from retrieval.index.recovery import headings_for
from retrieval.presets.consolidated.evidence.section_state import SectionStage, SectionState

_MAX_HOLDING: Final = 20_000  #: Limit of the summed document frequency of the terms that are searched in headings.
_MAX_SECONDS: Final = 1.0  #: Time limit: it only helps a recovery, which most searches do not need.


@dataclass(frozen=True, slots=True, kw_only=True)
class StructureConfig(Tunables, label="Headings"):
    """Search by headings, before the primary pool."""

    headings: int = tunable(
        8,
        low=0,
        high=50,
        unit="headings",
        help="Maximum number of document parts with matching headings; 0 turns this off.",
    )


@dataclass(frozen=True, slots=True)
class RouteStructure(SectionStage, name="structure", needs={"section", "terms", "scope"}, optional=True):
    """Find the parts of documents whose headings match the query."""

    config: StructureConfig

    about: ClassVar[About] = About(
        "headings",
        "Finds the parts of documents in scope whose headings match the question.",
        group=StageGroup.QUESTION,
        unit="",
        section="structure",
        notes={"structure_timeout": "headings timed out"},
    )

    def in_section(self, section: SectionState, state: SearchState) -> SearchState:
        """Return the state with the matching ranges of chunks."""
        if state.filter.hint or not state.scope.connection_ids:
            return state
        try:
            found = headings_for(
                rarest(state.terms.terms, cap=_MAX_HOLDING),
                scope=state.scope,
                request_filter=state.filter,
                depth=self.config.headings,
                timeout_seconds=min(state.deadline.leg_seconds, _MAX_SECONDS),
            )
        except SearchTimeoutError:
            return state.noted(Note("structure_timeout", "The search in headings timed out.", degraded=True))
        chunks = sum(it.end - it.start + 1 for it in found)
        text = f"{len(found)} parts of documents have matching headings, {chunks:,} chunks."
        event = {"event": "headings_found", "headings": len(found), "chunks": chunks}
        parts = state.parts_with(replace(section, headings=found))
        return state.with_more(parts=parts, notes=(Note("structure", text),), events=(event,))
