"""How exactly scores are told that rest on more than what is in scope. Pure.

BM25 rests on the fields' average lengths in the whole index. The search ranks by exact scores; who is no admin is told
them in two digits, and what was made of them in three decimals.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, overload

from retrieval.engine.state import SearchState
from retrieval.engine.types import Hit, Ranking, ScoreType
from retrieval.ranking.fusion import leg_of
from retrieval.ranking.signals import in_two_digits

_BM25: Final = ScoreType.BM25.value
#: Parts of a score, and signals, into which a BM25 score goes.
_PARTS: Final = frozenset({"fused", "graph", "seat", _BM25})
_SIGNALS: Final = frozenset({"graph", "blend", "pooled"})
_DECIMALS: Final = 3


def round_for_viewer(state: SearchState) -> SearchState:
    """Return a finished search as whoever asked is told of it; as it is for an admin, and where BM25 did not search.

    Order, ranks and what was found stay. A score is the sum of its parts still.
    """
    if state.is_admin or not any(leg_of(leg) == _BM25 for leg in state.rankings):
        return state
    # Some stages hand on the very ranking that they were given.
    told: dict[int, Ranking] = {}

    def of(ranking: Ranking) -> Ranking:
        return told.setdefault(id(ranking), _ToldRanking(ranking))

    return replace(
        state,
        hits=of(state.hits),
        passages=tuple(replace(passage, hit=_told(passage.hit)) for passage in state.passages),
        rankings={leg: of(ranking) for leg, ranking in state.rankings.items()},
        trace=tuple(replace(span, left=of(span.left)) for span in state.trace),
    )


@dataclass(frozen=True, slots=True)
class _ToldRanking(Sequence[Hit]):
    """A ranking whose hits are told when they are looked at: a search has hundreds of them and mostly shows ten."""

    _exact: Ranking = field(repr=False)

    def __len__(self) -> int:
        return len(self._exact)

    @overload
    def __getitem__(self, place: int) -> Hit: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[Hit, ...]: ...

    def __getitem__(self, place: int | slice) -> Hit | tuple[Hit, ...]:
        found = self._exact[place]
        return _told(found) if isinstance(found, Hit) else tuple(map(_told, found))


def _told(hit: Hit) -> Hit:
    """Return a hit with its scores as they are told; the very hit where nothing of it rests on BM25."""
    score, parts, signals, lifts = hit.score, hit.contributions, hit.signals, hit.lifts
    if not _PARTS.isdisjoint(parts):
        parts = _rounded(parts, _PARTS)
        score = math.fsum(parts.values())
    if hit.score_type is ScoreType.BM25:
        score = in_two_digits(hit.score)
    if not _SIGNALS.isdisjoint(signals):
        signals = _rounded(signals, _SIGNALS)
    if _BM25 in signals:
        signals = {**signals, _BM25: in_two_digits(signals[_BM25])}
    if lifts:
        lifts = tuple(replace(lift, amount=round(lift.amount, _DECIMALS)) for lift in lifts)
    if score == hit.score and parts is hit.contributions and signals is hit.signals and lifts is hit.lifts:
        return hit
    return Hit(
        hit.chunk_id, score, hit.score_type, hit.ranks, signals, parts, hit.matches, hit.facts, lifts, hit.provider
    )


def _rounded(values: Mapping[str, float], names: frozenset[str]) -> Mapping[str, float]:
    return {name: round(value, _DECIMALS) if name in names else value for name, value in values.items()}
