"""Ordering the pool: freshness, the weighted blend, and trust among near-ties."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

from retrieval.config import BlendConfig
from retrieval.fusion import best_first, min_max
from retrieval.types import Hit, Ranking, ScoreType


def idf(document_frequency: int, corpus_size: int) -> float:
    """Return ln(1 + (N - df + 0.5) / (df + 0.5)), the BM25 weight of a term that never falls below 0.

    Robertson and Spärck Jones as Lucene has it; df is capped at N, since both are counted separately.
    """
    df = min(max(document_frequency, 0), corpus_size)
    return math.log1p((corpus_size - df + 0.5) / (df + 0.5))


def freshness(age_days: float, half_life_days: float) -> float:
    """Return 0.5 ** (age / half-life): 1 for new, 0.5 after one half-life; an age in the future counts as 0."""
    return float(0.5 ** (max(0.0, age_days) / half_life_days))


def blend(hits: Ranking, config: BlendConfig) -> Ranking:
    """Score each hit by the weighted sum of its signals, best first.

    Cosine and full-text relevance are min-max-normalised over the pool; a hit without one of them gets
    nothing for it. Freshness is a share already and enters as it is, so that two documents synced a minute
    apart stay a minute apart. The parts are kept as `contributions`.
    """
    cosine = _normalised(hits, "cosine", least_span=config.least_cosine_span)
    fulltext = _normalised(hits, "fulltext")
    blended = (
        _with_contributions(
            hit,
            dense=config.dense * cosine.get(place, 0.0),
            fulltext=config.fulltext * fulltext.get(place, 0.0),
            freshness=config.freshness * hit.signals.get("freshness", 0.0),
        )
        for place, hit in enumerate(hits)
    )
    return tuple(sorted(blended, key=best_first))


def _normalised(hits: Ranking, signal: str, *, least_span: float = 0.0) -> dict[int, float]:
    """Return the min-max-normalised signal by place in `hits`, of the hits that have it."""
    places = [place for place, hit in enumerate(hits) if signal in hit.signals]
    values = min_max([hits[place].signals[signal] for place in places], least_span=least_span)
    return dict(zip(places, values, strict=True))


def _with_contributions(hit: Hit, **contributions: float) -> Hit:
    return replace(
        hit, score=math.fsum(contributions.values()), score_type=ScoreType.BLEND, contributions=contributions
    )


def break_ties(hits: Ranking, *, trust: Callable[[Hit], int], tolerance: float) -> Ranking:
    """Put the more trusted first among hits whose scores lie within `tolerance` of their group's best.

    Groups are taken from the top: a hit joins while it is within the tolerance of the group's first, so a
    chain of small steps cannot lift a hit by more than the tolerance. Expects hits best first.
    """
    ordered: list[Hit] = []
    for group in _near_ties(hits, tolerance):
        ordered.extend(sorted(group, key=lambda hit: (-trust(hit), *best_first(hit))))
    return tuple(ordered)


def _near_ties(hits: Ranking, tolerance: float) -> Iterator[list[Hit]]:
    """Yield runs of hits within the tolerance of their first."""
    group: list[Hit] = []
    for hit in hits:
        if group and group[0].score - hit.score > tolerance:
            yield group
            group = []
        group.append(hit)
    if group:
        yield group
