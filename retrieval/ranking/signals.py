"""Ranking by several signals at once: relevance, recency, salience, confidence and the graph. Pure."""

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from corecube.scope import TrustLevel
from retrieval.engine.types import ChunkFacts, Hit, Ranking, ScoreType
from retrieval.ranking.blend import Weights
from retrieval.ranking.fusion import best_first, min_max, normalised

#: In the order of the reference's formula, and of every ledger.
SIGNALS: Final = ("similarity", "recency", "salience", "confidence", "graph")
#: Name of the signal: the share of the query's identifiers that a hit contains exactly as written.
WRITTEN: Final = "written"
#: Name of the signal of a hit in a reserved slot, which ranks before all others: its slot, from 1.
SEAT: Final = "seat"
VARIANTS: Final = "variants"  #: Name of the signal of a hit that a reformulation of the query found.
_HOUR: Final = timedelta(hours=1)
_HIGHEST: Final = max(TrustLevel)


def recency(last: datetime, now: datetime, *, hourly_decay: float) -> float:
    """Return hourly_decay ** hours since a moment, 0 to 1; one in the future counts as now.

    Park et al., "Generative Agents", UIST 2023: 0.995 an hour, from the last access.
    """
    return float(hourly_decay ** max(0.0, (now - last) / _HOUR))


def last_read(chunk: ChunkFacts, now: datetime, *, to_the_day: bool) -> datetime | None:
    """Return when a chunk's document was last read; None if never.

    `to_the_day` gives the end of the last completed day (UTC) on which it was read. Otherwise a user who repeats a
    search could see when somebody else read it.
    """
    if not to_the_day:
        return chunk.accessed_at
    ends = [
        moment.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
        for moment in (chunk.accessed_at, chunk.accessed_before)
        if moment is not None
    ]
    return max((end for end in ends if end <= now), default=None)


def last_touched(chunk: ChunkFacts, now: datetime, *, to_the_day: bool) -> datetime:
    """Return when a chunk's document was last read; if never, when it last changed, else when it was synced."""
    return last_read(chunk, now, to_the_day=to_the_day) or chunk.modified_at or chunk.synced_at


def in_two_digits(value: float) -> float:
    """Return a value rounded to two significant digits: 13 for 12.6."""
    return float(f"{value:.2g}")


def confidence(trust: TrustLevel, *, is_confirmed: bool) -> float:
    """Return trust / 3 of a chunk; a person's confirmation adds half of what is missing to 1.

    volatile 1/3, reference 2/3, authoritative 1; confirmed 2/3, 5/6, 1.
    """
    share = trust / _HIGHEST
    return (1 + share) / 2 if is_confirmed else share


def similarity(hits: Ranking, legs: Weights, *, min_cosine_span: float) -> list[float | None]:
    """Return each hit's relevance: its cosine and full-text score, min-max-normalised over the pool and weighted.

    None for a hit without both. See `with_sparse` for a third leg.
    """
    cosines = normalised(hits, "cosine", min_span=min_cosine_span)
    scores = normalised(hits, "fulltext")
    return [
        None if cosine is None and score is None else legs.dense * (cosine or 0.0) + legs.fulltext * (score or 0.0)
        for cosine, score in zip(cosines, scores, strict=True)
    ]


def with_sparse(similarities: list[float | None], hits: Ranking, share: float) -> list[float | None]:
    """Return the similarities with the sparse leg's part: (1 - share) of what they are, share of its score.

    Its scores are min-max-normalised. A hit that the leg did not return counts with half the lowest returned score.
    Without any score the similarities stay as they are.
    """
    scores = [hit.signals.get("sparse") for hit in hits]
    known = [score for score in scores if score is not None]
    if not known:
        return similarities
    shares = min_max([min(known) / 2 if score is None else score for score in scores])
    return [
        share * sparse if value is None and sparse else None if value is None else (1 - share) * value + share * sparse
        for value, sparse in zip(similarities, shares, strict=True)
    ]


def with_fused(similarities: list[float | None], hits: Ranking, *, share: float = 0.0) -> list[float | None]:
    """Return similarities mixed with the fused score, which has this share, and half where variants were searched for.

    Similarity to the query alone would rank last what only reformulations of it find. Fused scores are
    min-max-normalised over the pool; a hit that no leg found has 0.
    """
    share = max(share, 0.5 if any(VARIANTS in hit.signals for hit in hits) else 0.0)
    if not share:
        return similarities
    fused = min_max([hit.signals.get("rrf", 0.0) for hit in hits])
    return [(1 - share) * (known or 0.0) + share * part for known, part in zip(similarities, fused, strict=True)]


def with_written(similarities: Sequence[float | None], held: Sequence[float], *, share: float) -> list[float | None]:
    """Return similarities mixed with the share of the query's identifiers in each hit (0 to 1); unchanged if all 0."""
    if not any(held):
        return list(similarities)
    return [(1 - share) * (known or 0.0) + share * part for known, part in zip(similarities, held, strict=True)]


def rank_by_signals(
    hits: Ranking, weights_of: Callable[[Hit], Mapping[str, float]], *, min_spans: Mapping[str, float]
) -> Ranking:
    """Score each hit by the sum of its signals with its weights, best first, reserved slots before all others.

    Each signal is min-max-normalised over the pool; a narrower range than its minimum span counts as that span, so that
    small differences are not enlarged. A missing signal adds nothing, and so does one that is the same for all hits.
    The parts are stored as `contributions` and sum to the score.
    """
    columns = [normalised(hits, name, min_span=min_spans.get(name, 0.0)) for name in SIGNALS]
    scored = []
    for hit, *values in zip(hits, *columns, strict=True):
        weights = weights_of(hit)
        parts = {name: weights[name] * it for name, it in zip(SIGNALS, values, strict=True) if it is not None}
        scored.append(hit.scored(math.fsum(parts.values()), ScoreType.SIGNALS, parts))
    return tuple(sorted(scored, key=seated_first))


def seated_first(hit: Hit) -> tuple[float, object]:
    """Sort key: reserved slots in order, then the higher score, then the lower chunk id."""
    return (hit.signals.get(SEAT, math.inf), best_first(hit))
