"""How exactly scores are told that rest on more than what is in scope. Pure.

BM25 rests on the fields' average lengths in the whole index. The search ranks by exact scores; who is no admin is told
them in two digits, and what was made of them in three decimals.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from retrieval.fusion import leg_of
from retrieval.signals import in_two_digits
from retrieval.types import Hit, Passage, Ranking, ScoreType, SearchState

_BM25: Final = ScoreType.BM25.value
#: Parts of a score, and signals, into which a BM25 score goes.
_PARTS: Final = frozenset({"fused", "graph", "seat", _BM25})
_SIGNALS: Final = frozenset({"graph", "blend", "pooled"})
_DECIMALS: Final = 3


def as_told(state: SearchState) -> SearchState:
    """Return a finished search as whoever asked is told of it; as it is for an admin, and where BM25 did not search.

    Order, ranks and what was found stay. A score is the sum of its parts still.
    """
    if state.is_admin or not any(leg_of(leg) == _BM25 for leg in state.rankings):
        return state
    # Most stages hand on the very hits that they were given.
    told: dict[int, Hit] = {}

    def of(hit: Hit) -> Hit:
        found = told.get(id(hit))
        if found is None:
            found = told[id(hit)] = _told(hit)
        return found

    def all_of(ranking: Ranking) -> Ranking:
        return tuple(map(of, ranking))

    def packed(passage: Passage) -> Passage:
        return replace(passage, hit=of(passage.hit))

    return replace(
        state,
        hits=all_of(state.hits),
        passages=tuple(map(packed, state.passages)),
        rankings={leg: all_of(ranking) for leg, ranking in state.rankings.items()},
        trace=tuple(replace(span, left=all_of(span.left)) for span in state.trace),
    )


def _told(hit: Hit) -> Hit:
    score, parts = hit.score, _rounded(hit.contributions, _PARTS)
    if hit.score_type is ScoreType.BM25:
        score = in_two_digits(hit.score)
    elif parts != hit.contributions:
        score = math.fsum(parts.values())
    signals = _rounded(hit.signals, _SIGNALS)
    if _BM25 in signals:
        signals = {**signals, _BM25: in_two_digits(signals[_BM25])}
    lifts = tuple(replace(lift, amount=round(lift.amount, _DECIMALS)) for lift in hit.lifts)
    return replace(hit, score=score, contributions=parts, signals=signals, lifts=lifts)


def _rounded(values: Mapping[str, float], names: frozenset[str]) -> Mapping[str, float]:
    return {name: round(value, _DECIMALS) if name in names else value for name, value in values.items()}
