"""The depth of a section by its complexity, documents and health; grades A to F, which relax limits for a poor pool."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from retrieval.engine.tunables import Tunables, costly, fraction, tunable

_TOLERANCE: Final = 1e-9  #: Tolerance for a product of floats slightly above an integer.


@dataclass(frozen=True, slots=True, kw_only=True)
class DepthConfig(Tunables, label="Depth"):
    """How many chunks a section requests."""

    few_documents: int = tunable(
        2,
        low=0,
        high=1000,
        unit="documents",
        help="Maximum number of documents that counts as few.",
        at_most="some_documents",
    )
    some_documents: int = tunable(
        10, low=1, high=10_000, unit="documents", help="Maximum number of documents that counts as medium."
    )
    few_factor: float = costly(1.75, low=1.0, high=4.0, help="Factor for the section's complexity with few documents.")
    some_factor: float = costly(
        1.0, low=1.0, high=4.0, help="Factor for the section's complexity between few and many documents."
    )
    many_factor: float = costly(1.5, low=1.0, high=4.0, help="Factor for the section's complexity with many documents.")
    minimum: int = costly(
        8,
        low=1,
        high=100,
        unit="chunks",
        help="Minimum number of chunks that a section requests, unless its maximum is lower.",
    )
    sparse_below: int = tunable(
        200, low=0, high=100_000, unit="chunks", help="A compartment with fewer chunks is sparse."
    )
    sparse_factor: float = costly(1.25, low=1.0, high=4.0, help="Factor for the depth in a sparse compartment.")
    degraded_factor: float = costly(
        1.5, low=1.0, high=4.0, help="Factor for the depth in a compartment whose last searches failed or fell back."
    )
    over_fetch: float = costly(
        1.5,
        low=1.0,
        high=3.0,
        help="Factor for the chunks that are read, so that rare source types remain after the cut.",
        at_most="over_fetch_limit",
    )
    over_fetch_limit: float = costly(
        1.6,
        low=1.0,
        high=3.0,
        help="Maximum accepted over-fetch. Raise it only if the connection pool has spare connections.",
    )


class Health(StrEnum):
    """How well a compartment can be searched."""

    GOOD = "good"
    SPARSE = "sparse"  #: It has few chunks.
    DEGRADED = "degraded"  #: Its last searches failed or fell back.


def health_of(chunks: int, *, is_failing: bool, config: DepthConfig) -> Health:
    """Return the health of a compartment; failing takes precedence over sparse."""
    if is_failing:
        return Health.DEGRADED
    return Health.SPARSE if chunks < config.sparse_below else Health.GOOD


def document_factor(documents: int, config: DepthConfig) -> float:
    """Return the factor of few (more from each), some or many documents (more overall) on a section's complexity."""
    if documents <= config.few_documents:
        return config.few_factor
    return config.some_factor if documents <= config.some_documents else config.many_factor


def health_factor(health: Health, config: DepthConfig) -> float:
    """Return the factor of a compartment's health, at least 1."""
    return {Health.GOOD: 1.0, Health.SPARSE: config.sparse_factor, Health.DEGRADED: config.degraded_factor}[health]


def adaptive_top_k(
    complexity: int, *, cap: int, documents: int, config: DepthConfig, health: Health = Health.GOOD
) -> int:
    """Return how many chunks to rerank: complexity times both factors, rounded up, from the floor up to the cap."""
    wanted = rounded_up(complexity * document_factor(documents, config) * health_factor(health, config))
    return min(cap, max(config.minimum, wanted))


def over_fetched(top_k: int, *, cap: int, config: DepthConfig) -> int:
    """Return how many chunks to read so that `top_k` can be chosen from them: at least `top_k`, at most the cap."""
    return max(top_k, min(cap, rounded_up(top_k * config.over_fetch)))


def rounded_up(number: float) -> int:
    """Round a product of decimal numbers up, tolerating floating-point noise."""
    return math.ceil(number - _TOLERANCE)


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeConfig(Tunables, label="Grades"):
    """Grades of a pool by its similarity, and how floors and depth change for low grades."""

    a_from: float = fraction(0.6, unit="similarity", help="Minimum scaled similarity for grade A.")
    b_from: float = fraction(0.5, unit="similarity", help="Minimum scaled similarity for grade B.", at_most="a_from")
    c_from: float = fraction(0.4, unit="similarity", help="Minimum scaled similarity for grade C.", at_most="b_from")
    d_from: float = fraction(
        0.25, unit="similarity", help="Minimum scaled similarity for grade D; below it is F.", at_most="c_from"
    )
    c_relief: float = fraction(0.9, help="Factor for the score floor at grade C.")
    d_relief: float = fraction(0.75, help="Factor for the score floor at grade D.", at_most="c_relief")
    f_relief: float = fraction(0.5, help="Factor for the score floor at grade F.", at_most="d_relief")
    c_depth: float = costly(
        1.1, low=1.0, high=3.0, help="Factor for the depth that is reranked at grade C.", at_most="d_depth"
    )
    d_depth: float = costly(
        1.25, low=1.0, high=3.0, help="Factor for the depth that is reranked at grade D.", at_most="f_depth"
    )
    f_depth: float = costly(1.5, low=1.0, high=3.0, help="Factor for the depth that is reranked at grade F.")


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
    """Return how many chunks to rerank for a grade, rounded up: more for C, D and F, up to the cap; None keeps it."""
    depths = {Grade.C: config.c_depth, Grade.D: config.d_depth, Grade.F: config.f_depth}
    factor = depths.get(grade, 1.0) if grade else 1.0
    return max(top_k, min(cap, rounded_up(top_k * factor)))
