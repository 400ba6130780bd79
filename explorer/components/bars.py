"""Horizontal bars as numbers for SVG attributes, since the content security policy allows no style attribute."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from retrieval.encoders.late_interaction import LateInteraction
from retrieval.engine.types import Hit, ScoreType
from retrieval.ranking.blend import on_unit_scale

_RERANKED: Final = frozenset({ScoreType.LOGIT, ScoreType.RELEVANCE})
#: Parts and legs that have the colour of another signal, of the same kind.
_COLOURS: Final[Mapping[str, str]] = {"semantic": "dense", "bm25": "fulltext", "pooled": "freshness"}


@dataclass(frozen=True, slots=True)
class BarPart:
    """A piece of a bar, in percent of its whole length."""

    #: Decides the colour: a signal or a stage.
    signal: str
    x: float
    width: float
    #: Drawn dashed: the leg did not return the hit, its signal was computed afterwards.
    absent: bool = False


def stacked(parts: Mapping[str, float], *, whole: float, absent: frozenset[str] = frozenset()) -> tuple[BarPart, ...]:
    """Return the parts one after the other, each as a share of `whole`, together at most 100."""
    laid: list[BarPart] = []
    place = 0.0
    for signal, value in parts.items():
        width = min(percent(value, whole), 100.0 - place)
        if width > 0:
            laid.append(BarPart(signal, round(place, 2), round(width, 2), absent=signal in absent))
            place += width
    return tuple(laid)


def percent(value: float, whole: float) -> float:
    """Return a share in percent, between 0 and 100; 0 of nothing is 0."""
    return max(0.0, min(100.0, 100.0 * value / whole)) if whole > 0 else 0.0


def score_bar(hit: Hit, *, legs: frozenset[str], whole: float) -> tuple[BarPart, ...]:
    """Return a hit's contributions as a bar; those of a leg that did not return the hit are marked absent.

    `whole` is the highest blended score there can be. A reranker's own score is a share of 1, a logit through the
    logistic function.
    """
    if hit.score_type in _RERANKED:
        return stacked({"rerank": on_unit_scale(hit)}, whole=1.0)
    if hit.score_type is ScoreType.MAXSIM:
        whole += LateInteraction.blend_weight
    parts = {_COLOURS.get(part, part): amount for part, amount in hit.contributions.items()}
    return stacked(parts, whole=whole, absent=frozenset(_COLOURS.get(leg, leg) for leg in legs - hit.ranks.keys()))
