"""The section's floors."""

from dataclasses import dataclass, replace
from typing import ClassVar

from retrieval.evidence.config import GradeConfig
from retrieval.evidence.floors import above_quality_floor, above_score_floor
from retrieval.evidence.grades import grade_of, relaxed_floor
from retrieval.evidence.section_state import SectionState
from retrieval.types import Note, Ranking, SearchState


@dataclass(frozen=True, slots=True)
class SectionFloors:
    """Drop what is below the quality floor or the score floor, which a poor retrieval relaxes."""

    grades: GradeConfig

    name: ClassVar[str] = "floors"
    needs: ClassVar[frozenset[str]] = frozenset({"hits", "facts", "section"})
    gives: ClassVar[frozenset[str]] = frozenset()
    optional: ClassVar[bool] = False

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state without hits under a floor, its section with grade and raw cosines.

        Both are taken from the whole pool, before anything is cut off it. A pool without any cosine has no grade, and
        its floor is not relaxed. The quality floor is the one that the legs were filtered by.
        """
        if state.section is None or not state.hits:
            return state
        section = self._graded(state.section, state.hits)
        good, too_poor = above_quality_floor(state.hits, state.filter.least_quality)
        kept, too_far = above_score_floor(good, section.score_floor)
        return replace(
            state,
            hits=kept,
            section=section,
            drops=(*state.drops, *too_poor, *too_far),
            notes=(*state.notes, _note(section)),
            events=(*state.events, _event(section, len(too_poor), len(too_far))),
        )

    def _graded(self, section: SectionState, pool: Ranking) -> SectionState:
        cosines = tuple(hit.signals["cosine"] for hit in pool if "cosine" in hit.signals)
        policy = section.ask.section
        if not cosines:
            return replace(section, cosines=None, grade=None, score_floor=policy.score_floor)
        grade = grade_of(cosines, keep=policy.keep, config=self.grades)
        floor = relaxed_floor(policy.score_floor, grade, self.grades)
        return replace(section, cosines=cosines, grade=grade, score_floor=floor)


def _note(section: SectionState) -> Note:
    if section.grade is None:
        return Note("ungraded", f"No chunk of the pool has a cosine; the score floor is {section.score_floor:.3f}.")
    return Note("graded", f"The pool is graded {section.grade}; the score floor is {section.score_floor:.3f}.")


def _event(section: SectionState, too_poor: int, too_far: int) -> dict[str, object]:
    return {
        "event": "pool_graded",
        "grade": str(section.grade or ""),
        "score_floor": section.score_floor,
        "static_floor": section.ask.section.score_floor,
        "below_quality": too_poor,
        "below_score": too_far,
    }
