"""How many chunks a section asks for: its complexity, scaled by how many documents there are and how they fare."""

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Final

from retrieval.engine.tunables import Tunables, tunable

#: A product of floats may lie a hair above the whole number that it means.
_HAIR: Final = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class DepthConfig(Tunables):
    """How many chunks a section asks for."""

    label: ClassVar[str] = "Depth"

    few_documents: int = tunable(
        2, low=0, high=1000, unit="documents", help="Up to this many documents are few.", at_most="some_documents"
    )
    some_documents: int = tunable(10, low=1, high=10_000, unit="documents", help="More documents than this are many.")
    few_factor: float = tunable(
        1.75, low=1.0, high=4.0, unit="", help="Factor for the section's complexity with few documents.", costs=True
    )
    some_factor: float = tunable(
        1.0,
        low=1.0,
        high=4.0,
        unit="",
        help="Factor for the section's complexity between few and many documents.",
        costs=True,
    )
    many_factor: float = tunable(
        1.5, low=1.0, high=4.0, unit="", help="Factor for the section's complexity with many documents.", costs=True
    )
    minimum: int = tunable(
        8,
        low=1,
        high=100,
        unit="chunks",
        help="Smallest number of chunks that a section asks for, unless its own cap is lower.",
        costs=True,
    )
    sparse_below: int = tunable(
        200, low=0, high=100_000, unit="chunks", help="A compartment with fewer chunks is sparse."
    )
    sparse_factor: float = tunable(
        1.25, low=1.0, high=4.0, unit="", help="Factor for the depth in a sparse compartment.", costs=True
    )
    degraded_factor: float = tunable(
        1.5,
        low=1.0,
        high=4.0,
        unit="",
        help="Factor for the depth in a compartment whose last searches failed or fell back.",
        costs=True,
    )
    over_fetch: float = tunable(
        1.5,
        low=1.0,
        high=3.0,
        unit="",
        help="Factor for the depth that is read, so that rare source types can stay in the cut.",
        costs=True,
        at_most="over_fetch_limit",
    )
    over_fetch_limit: float = tunable(
        1.6,
        low=1.0,
        high=3.0,
        unit="",
        help="Highest over-fetch that is accepted. Raise it only if the connection pool has room.",
        costs=True,
    )


class Health(StrEnum):
    """How well a compartment can be searched."""

    GOOD = "good"
    #: It has few chunks.
    SPARSE = "sparse"
    #: Its last searches failed or fell back.
    DEGRADED = "degraded"


def health_of(chunks: int, *, is_failing: bool, config: DepthConfig) -> Health:
    """Return how a compartment with so many chunks fares; failing weighs more than being sparse."""
    if is_failing:
        return Health.DEGRADED
    return Health.SPARSE if chunks < config.sparse_below else Health.GOOD


def document_factor(documents: int, config: DepthConfig) -> float:
    """Return what few, some or many documents multiply a section's complexity by.

    Few documents need more candidates from each, many need more to be found among.
    """
    if documents <= config.few_documents:
        return config.few_factor
    return config.some_factor if documents <= config.some_documents else config.many_factor


def health_factor(health: Health, config: DepthConfig) -> float:
    """Return what a compartment's health multiplies it by, at least 1: a weak signal asks for more, never for less."""
    return {Health.GOOD: 1.0, Health.SPARSE: config.sparse_factor, Health.DEGRADED: config.degraded_factor}[health]


def adaptive_top_k(
    complexity: int, *, cap: int, documents: int, config: DepthConfig, health: Health = Health.GOOD
) -> int:
    """Return how many chunks to rerank: complexity times both factors, rounded up, between the floor and the cap.

    The cap wins over the floor.
    """
    wanted = rounded_up(complexity * document_factor(documents, config) * health_factor(health, config))
    return min(cap, max(config.minimum, wanted))


def over_fetched(top_k: int, *, cap: int, config: DepthConfig) -> int:
    """Return how many chunks to read so that `top_k` can be chosen from them: never fewer, never more than the cap."""
    return max(top_k, min(cap, rounded_up(top_k * config.over_fetch)))


def rounded_up(number: float) -> int:
    """Return the least whole number that is not below a product of numbers that people wrote."""
    return math.ceil(number - _HAIR)
