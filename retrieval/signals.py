"""Ranking by several signals at once: relevance, recency, salience, confidence and the graph. Pure."""

import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from corecube.scope import TrustLevel
from retrieval.fusion import best_first, min_max
from retrieval.ranking import Weights
from retrieval.types import ChunkFacts, Hit, Ranking, ScoreType

#: In the order of the reference's formula, and of every ledger.
SIGNALS: Final = ("similarity", "recency", "salience", "confidence", "graph")
#: Name of the signal that gives a hit a seat before all others: its place among the seats, from 1.
SEAT: Final = "seat"
_HOUR: Final = timedelta(hours=1)


def recency(last: datetime, now: datetime, *, hourly_decay: float) -> float:
    """Return hourly_decay ** hours since a moment, 0 to 1; one in the future counts as now.

    Park et al., "Generative Agents", UIST 2023: 0.995 an hour, from the last access.
    """
    return float(hourly_decay ** max(0.0, (now - last) / _HOUR))


def last_touched(chunk: ChunkFacts) -> datetime:
    """Return when a chunk's document was last read; while nobody has, when it last changed, else was synced."""
    return chunk.accessed_at or chunk.modified_at or chunk.synced_at


def confidence(trust: TrustLevel, *, is_confirmed: bool) -> float:
    """Return how far a chunk is to be believed: trust / 3, and half of what lacks to 1 for a person's confirmation.

    volatile 1/3, reference 2/3, authoritative 1; confirmed 2/3, 5/6, 1.
    """
    share = trust / max(TrustLevel)
    return (1 + share) / 2 if is_confirmed else share


def similarity(hits: Ranking, legs: Weights, *, least_cosine_span: float) -> list[float | None]:
    """Return each hit's relevance: its cosine and full-text score, min-max-normalised over the pool and weighed.

    A hit that has neither has none.
    """
    cosines = _normalised(hits, "cosine", least_span=least_cosine_span)
    scores = _normalised(hits, "fulltext")
    return [
        None if cosine is None and score is None else legs.dense * (cosine or 0.0) + legs.fulltext * (score or 0.0)
        for cosine, score in zip(cosines, scores, strict=True)
    ]


def _normalised(hits: Ranking, signal: str, *, least_span: float = 0.0) -> list[float | None]:
    return min_max_known([hit.signals.get(signal) for hit in hits], least_span=least_span)


def min_max_known(values: list[float | None], *, least_span: float = 0.0) -> list[float | None]:
    """Map the known values linearly, so that the least is 0 and the greatest 1; where all are equal, all are 0."""
    mapped = iter(min_max([value for value in values if value is not None], least_span=least_span))
    return [None if value is None else next(mapped) for value in values]


def rank_by_signals(hits: Ranking, weights: Mapping[str, float], *, least_spans: Mapping[str, float]) -> Ranking:
    """Score each hit by the weighted sum of its signals, best first, those with a seat before all others.

    Each signal is min-max-normalised over the pool; a range below its least span counts as that wide, so that a
    difference without meaning is not blown up. A signal that a hit does not have adds nothing, and one that is the same
    for all of them decides nothing and adds nothing. The parts are kept as `contributions` and sum to the score.
    """
    columns = {
        name: min_max_known([hit.signals.get(name) for hit in hits], least_span=least_spans.get(name, 0.0))
        for name in SIGNALS
    }
    scored = (_scored(hit, weights, {name: columns[name][place] for name in SIGNALS}) for place, hit in enumerate(hits))
    return tuple(sorted(scored, key=_seated_first))


def _scored(hit: Hit, weights: Mapping[str, float], values: Mapping[str, float | None]) -> Hit:
    parts = {name: weights[name] * value for name, value in values.items() if value is not None}
    return replace(hit, score=math.fsum(parts.values()), score_type=ScoreType.SIGNALS, contributions=parts)


def _seated_first(hit: Hit) -> tuple[float, object]:
    return (hit.signals.get(SEAT, math.inf), best_first(hit))
