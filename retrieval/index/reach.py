"""The choice of indexes for a full-text statement."""

from enum import StrEnum
from typing import Final

#: What it takes to fetch a chunk and look into it, in units of what it takes to mark one that an index lists.
_FETCH: Final = 30
_FETCH_NEIGHBOUR: Final = 20


class Reach(StrEnum):
    """How the chunks are reached that match and are in scope."""

    #: By whichever indexes the planner chooses: few are in scope, or few match.
    BOTH = "both"
    #: By the matches, each looked at for its connection: the scope is too large to be marked.
    MATCHES = "matches"
    #: By the scope, each chunk looked into for the terms: they are too common outside it.
    SCOPE = "scope"


def cheapest_reach(*, chunks: int, matches: int, everything: float) -> Reach:
    """Return how to reach `matches` chunks in a scope of `chunks`, of `everything` in the store.

    The terms are taken to be as common outside the scope as in it. Both indexes together cost a mark for each chunk in
    scope and for each match anywhere, and a fetch for each match in scope.
    """
    anywhere = matches * max(1.0, everything / max(chunks, 1))
    costs = {
        Reach.BOTH: chunks + anywhere + matches * _FETCH,
        Reach.MATCHES: anywhere * (1 + _FETCH),
        Reach.SCOPE: float(chunks * _FETCH_NEIGHBOUR),
    }
    return min(costs, key=lambda reach: costs[reach])
