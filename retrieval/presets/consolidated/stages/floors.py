"""The section's minimum relevance and quality."""

from dataclasses import dataclass, replace
from typing import ClassVar

from retrieval.encoders.cosine_scale import UNSCALED, CosineScale
from retrieval.engine.about import About
from retrieval.engine.state import DropReason, Note, SearchState
from retrieval.engine.types import Ranking
from retrieval.presets.consolidated.evidence.density import (
    DensityConfig,
    above_quality_floor,
    above_score_floor,
    tighten_hint,
)
from retrieval.presets.consolidated.evidence.depth import GradeConfig, grade_of, relaxed_floor
from retrieval.presets.consolidated.evidence.rerank_guard import RerankGuard
from retrieval.presets.consolidated.evidence.section_state import UNDECIDED, SectionStage, SectionState


@dataclass(frozen=True, slots=True)
class SectionFloors(SectionStage, name="floors", needs={"hits", "facts", "section"}):
    """Drop hits below the quality floor or the score floor, which a poor grade relaxes."""

    grades: GradeConfig
    density: DensityConfig
    guard: RerankGuard | None = None  #: None without a cross-encoder: then the tail is not cut off.
    scale: CosineScale = UNSCALED

    about: ClassVar[About] = About(
        "floors",
        "Drops chunks below the section's floors of relevance and quality.",
        drops=(DropReason.QUALITY, DropReason.BELOW_FLOOR),
    )

    def in_section(self, section: SectionState, state: SearchState) -> SearchState:
        """Return the state without hits below a floor, with the pool's grade and where its tail may be cut off.

        Both are decided by the entire pool. A pool without cosines has no grade and keeps the section's floor. The
        quality floor is the one that the legs were filtered by.
        """
        if not state.hits:
            return state
        section = self._graded(section, state.hits)
        good, too_poor = above_quality_floor(state.hits, state.filter.min_quality)
        kept, too_far = above_score_floor(good, section.score_floor, self.scale)
        text = f"The minimum scaled similarity is {section.score_floor:.3f} ({self.scale})."
        note = Note("graded", f"The pool is graded {section.grade}. {text}")
        if section.grade is None:
            note = Note("ungraded", f"No chunk of the pool has a cosine; the score floor is {section.score_floor:.3f}.")
        event = {
            "event": "pool_graded",
            "grade": str(section.grade or ""),
            "score_floor": section.score_floor,
            "static_floor": section.ask.section.score_floor,
            "cosine_noise": round(self.scale.noise, 4) if self.scale.is_measured else None,
            "below_quality": len(too_poor),
            "below_score": len(too_far),
        }
        parts, drops = state.parts_with(section), (*too_poor, *too_far)
        return state.with_more(hits=kept, parts=parts, drops=drops, notes=(note,), events=(event,))

    def _graded(self, section: SectionState, pool: Ranking) -> SectionState:
        nearness = [near for hit in pool if (near := self.scale.nearness_of(hit)) is not None]
        policy = section.ask.section
        if not nearness:
            return replace(section, hint=UNDECIDED, grade=None, score_floor=policy.score_floor)
        grade = grade_of(nearness, keep=policy.keep, config=self.grades)
        floor = relaxed_floor(policy.score_floor, grade, self.grades)
        hint = tighten_hint(
            nearness,
            grade=grade,
            static_floor=floor,
            keep=policy.keep,
            breaker=None if self.guard is None else self.guard.breaker.state,
            config=self.density,
        )
        return replace(section, hint=hint, grade=grade, score_floor=floor)
