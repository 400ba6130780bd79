"""Horizontal bars as numbers for SVG attributes, since the content security policy allows no style attribute."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from retrieval.encoders.late_interaction import LateInteraction
from retrieval.engine.types import Hit, ScoreType
from retrieval.ranking.blend import on_unit_scale

_RERANKED: Final = frozenset({ScoreType.LOGIT, ScoreType.RELEVANCE})
#: Parts and legs drawn in the colour of a signal of the same kind.
_COLOURS: Final[Mapping[str, str]] = {"semantic": "dense", "bm25": "fulltext", "pooled": "freshness"}


@dataclass(frozen=True, slots=True)
class BarPart:
    """A part of a bar, in percent of its full length."""

    signal: str  #: Sets the colour: a signal or a stage.
    x: float
    width: float
    absent: bool = False  #: Drawn dashed: the leg did not return the hit, its signal was computed afterwards.


def stacked(parts: Mapping[str, float], *, full: float, absent: frozenset[str] = frozenset()) -> tuple[BarPart, ...]:
    """Return the parts in a row, each as a share of `full`, together at most 100."""
    laid: list[BarPart] = []
    place = 0.0
    for signal, value in parts.items():
        width = min(percent(value, full), 100.0 - place)
        if width > 0:
            laid.append(BarPart(signal, round(place, 2), round(width, 2), absent=signal in absent))
            place += width
    return tuple(laid)


def percent(value: float, full: float) -> float:
    """Return a share in percent, between 0 and 100; 0 if `full` is 0."""
    return max(0.0, min(100.0, 100.0 * value / full)) if full > 0 else 0.0


def score_bar(hit: Hit, *, legs: frozenset[str], full: float) -> tuple[BarPart, ...]:
    """Return a hit's contributions as a bar; those of a leg that did not return the hit are marked absent.

    `full` is the highest possible blended score. A reranker's own score is a share of 1, a logit through the logistic
    function.
    """
    if hit.score_type in _RERANKED:
        return stacked({"rerank": on_unit_scale(hit)}, full=1.0)
    if hit.score_type is ScoreType.MAXSIM:
        full += LateInteraction.blend_weight
    parts = {_COLOURS.get(part, part): amount for part, amount in hit.contributions.items()}
    return stacked(parts, full=full, absent=frozenset(_COLOURS.get(leg, leg) for leg in legs - hit.ranks.keys()))
