"""Grading a retrieval from A to F, and relaxing limits for a poor one."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from retrieval.engine.tunables import Tunables, tunable
from retrieval.presets.consolidated.evidence.depth import rounded_up


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeConfig(Tunables):
    """Grades of a pool by its similarity, and how floors and depth change for low grades."""

    label: ClassVar[str] = "Grades"

    a_from: float = tunable(0.6, low=0.0, high=1.0, unit="similarity", help="Minimum scaled similarity for grade A.")
    b_from: float = tunable(
        0.5, low=0.0, high=1.0, unit="similarity", help="Minimum scaled similarity for grade B.", at_most="a_from"
    )
    c_from: float = tunable(
        0.4, low=0.0, high=1.0, unit="similarity", help="Minimum scaled similarity for grade C.", at_most="b_from"
    )
    d_from: float = tunable(
        0.25,
        low=0.0,
        high=1.0,
        unit="similarity",
        help="Minimum scaled similarity for grade D; below it is F.",
        at_most="c_from",
    )
    c_relief: float = tunable(0.9, low=0.0, high=1.0, help="Factor for the score floor at grade C.")
    d_relief: float = tunable(
        0.75, low=0.0, high=1.0, help="Factor for the score floor at grade D.", at_most="c_relief"
    )
    f_relief: float = tunable(0.5, low=0.0, high=1.0, help="Factor for the score floor at grade F.", at_most="d_relief")
    c_depth: float = tunable(
        1.1, low=1.0, high=3.0, help="Factor for the depth that is reranked at grade C.", costs=True, at_most="d_depth"
    )
    d_depth: float = tunable(
        1.25, low=1.0, high=3.0, help="Factor for the depth that is reranked at grade D.", costs=True, at_most="f_depth"
    )
    f_depth: float = tunable(
        1.5, low=1.0, high=3.0, help="Factor for the depth that is reranked at grade F.", costs=True
    )


class Grade(StrEnum):
    """The grade of a retrieval."""

    A = "A"
    B = "B"
    C = "C"
    D = "D"
    F = "F"

    @property
    def is_high(self) -> bool:
        """Whether a dense pool may be cut."""
        return self in {Grade.A, Grade.B}


def grade_of(nearness: Sequence[float], *, keep: int, config: GradeConfig) -> Grade:
    """Return the grade of a pool by the mean of its `keep` best nearnesses; missing hits count as 0."""
    best = sorted(nearness, reverse=True)[:keep]
    mean = math.fsum(best) / keep
    bounds = ((Grade.A, config.a_from), (Grade.B, config.b_from), (Grade.C, config.c_from), (Grade.D, config.d_from))
    return next((grade for grade, minimum in bounds if mean >= minimum), Grade.F)


def relaxed_floor(floor: float, grade: Grade, config: GradeConfig) -> float:
    """Return the score floor for a grade: lower for C, D and F."""
    relief = {Grade.C: config.c_relief, Grade.D: config.d_relief, Grade.F: config.f_relief}
    return floor * relief.get(grade, 1.0)


def relaxed_top_k(top_k: int, grade: Grade | None, *, cap: int, config: GradeConfig) -> int:
    """Return how many chunks to rerank for a grade: more for C, D and F, up to the cap.

    Rounded up. A pool without a grade keeps its depth.
    """
    depths = {Grade.C: config.c_depth, Grade.D: config.d_depth, Grade.F: config.f_depth}
    factor = depths.get(grade, 1.0) if grade else 1.0
    return max(top_k, min(cap, rounded_up(top_k * factor)))
