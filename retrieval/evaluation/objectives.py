"""Checks of an objective that a request names."""

from corecube.errors import InvalidRequestError
from retrieval.ranking.measures import MEASURED_DEPTH, OBJECTIVES, Objective


def checked_objective(objective: Objective) -> Objective:
    """Return the objective; raise InvalidRequestError for an unknown measure and a cutoff out of bounds."""
    if objective.measure not in OBJECTIVES:
        raise InvalidRequestError(f"The measure must be one of {', '.join(OBJECTIVES)}.")
    if not 1 <= objective.cutoff <= MEASURED_DEPTH:
        raise InvalidRequestError(f"The cutoff must be between 1 and {MEASURED_DEPTH}.")
    return objective
