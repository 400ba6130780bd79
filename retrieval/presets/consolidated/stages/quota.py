"""Cutting the pool to the section's depth, with a quota for source types."""

from dataclasses import dataclass
from typing import ClassVar

from retrieval.engine.about import About
from retrieval.engine.state import DropReason, Note, SearchState
from retrieval.presets.consolidated.evidence.depth import GradeConfig, relaxed_top_k
from retrieval.presets.consolidated.evidence.order import QuotaConfig, cut_with_quota
from retrieval.presets.consolidated.evidence.recovery import is_recovered
from retrieval.presets.consolidated.evidence.section_state import SectionStage, SectionState


@dataclass(frozen=True, slots=True)
class CutWithQuota(SectionStage, name="quota", needs={"hits", "facts", "section"}):
    """Cut the over-fetched pool to the section's depth, deeper for a poor grade, with slots for rare source types."""

    config: QuotaConfig
    grades: GradeConfig

    about: ClassVar[About] = About(
        "selected",
        "Cuts the over-fetched pool, with reserved slots for rare source types.",
        section="quota",
        drops=(DropReason.SOURCE_QUOTA, DropReason.OUTSIDE_WINDOW),
    )

    def in_section(self, section: SectionState, state: SearchState) -> SearchState:
        """Return the state with the hits for the reranker; recovered ones are extra and never cut."""
        ask, grade = section.ask, section.grade
        top_k = relaxed_top_k(section.top_k, grade, cap=ask.section.cap, config=self.grades)
        found = tuple(hit for hit in state.hits if not is_recovered(hit))
        kept, drops = cut_with_quota(found, top_k, type_of=ask.type_of, config=self.config)
        if not drops:
            return state
        gone = {drop.chunk_id for drop in drops}
        seated = sum(found.index(hit) >= top_k for hit in kept)
        wider = f", more than {section.top_k} for the grade {grade}" if top_k > section.top_k else ""
        text = f"Cut {len(found)} chunks to {len(kept)}{wider}; {seated} of them retained for their source type."
        hits = tuple(hit for hit in state.hits if hit.chunk_id not in gone)
        event = {"event": "quota_cut", "pool": len(found), "kept": len(kept), "kept_for_type": seated}
        return state.with_more(hits=hits, drops=drops, notes=(Note("quota", text),), events=(event,))
