"""Ordering the pool: freshness, the weighted blend, and trust among near-ties."""

import math
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Final

from retrieval.engine.tunables import Tunables, fraction, tunable
from retrieval.engine.types import Hit, Ranking, ScoreType
from retrieval.ranking.fusion import best_first, normalised

_STANDOUT_DEPTH: Final = 10  #: Hits whose mean cosine the best one is compared with.


@dataclass(frozen=True, slots=True, kw_only=True)
class BlendConfig(Tunables):
    """How the pool is ordered: weights of min-max-normalised cosine, full-text relevance, and freshness."""

    dense: float = fraction(0.6, help="Weight of vector similarity.")
    fulltext: float = fraction(0.3, help="Weight of full-text relevance.")
    freshness: float = fraction(0.1, help="Weight of freshness.")
    min_cosine_span: float = fraction(
        0.1, help="Minimum cosine range of a pool at which vector similarity gets its full weight."
    )
    evidence_shift: float = fraction(
        0.33,
        help="Maximum share of the full-text weight that moves to the vectors if one hit has a clear lead; 0 for none.",
    )
    typical_standout: float = tunable(
        0.06,
        low=0.001,
        high=1.0,
        unit="cosine",
        help="The weights change only if the best cosine exceeds the mean of the top ten by more than this.",
    )


def idf(document_frequency: int, corpus_size: int) -> float:
    """Return ln(1 + (N - df + 0.5) / (df + 0.5)), the BM25 weight of a term that never falls below 0.

    Robertson and Spärck Jones as Lucene has it; df is capped at N, since both are counted separately.
    """
    df = min(max(document_frequency, 0), corpus_size)
    return math.log1p((corpus_size - df + 0.5) / (df + 0.5))


def freshness(age_days: float, half_life_days: float) -> float:
    """Return 0.5 ** (age / half-life): 1 for new, 0.5 after one half-life; an age in the future counts as 0."""
    return float(0.5 ** (max(0.0, age_days) / half_life_days))


@dataclass(frozen=True, slots=True)
class Weights:
    """The legs' weights in one query's blend."""

    dense: float
    fulltext: float
    #: Lead of the best cosine over the mean of the best ten; None where the pool is too small to tell.
    standout: float | None
    only: str = ""  #: The only leg that searched; the other signal is then ignored. Empty for both.

    @property
    def legs(self) -> dict[str, float]:
        """The weights of the legs that are counted."""
        both = {"dense": self.dense, "fulltext": self.fulltext}
        return {self.only: both[self.only]} if self.only else both


def query_weights(hits: Ranking, config: BlendConfig, *, ran: Collection[str] = ()) -> Weights:
    """Return the legs' weights for this query, their sum as configured.

    Where only one of the two legs `ran`, it gets both weights: the order is that leg's, and freshness keeps its share.

    Where one vector stands out, full text mostly adds noise. Its weight is multiplied by sqrt(typical / standout), but
    loses at most the share `evidence_shift`; the vectors get what it loses.
    """
    if len(searched := {"dense", "fulltext"}.intersection(ran)) == 1:
        (only,) = searched
        both = config.dense + config.fulltext
        return Weights(both if only == "dense" else 0.0, both if only == "fulltext" else 0.0, None, only)
    cosines = sorted((hit.signals["cosine"] for hit in hits if "cosine" in hit.signals), reverse=True)
    if len(cosines) < _STANDOUT_DEPTH:
        return Weights(config.dense, config.fulltext, None)
    standout = cosines[0] - math.fsum(cosines[:_STANDOUT_DEPTH]) / _STANDOUT_DEPTH
    factor = math.sqrt(config.typical_standout / max(standout, config.typical_standout))
    fulltext = config.fulltext * max(factor, 1 - config.evidence_shift)
    return Weights(config.dense + config.fulltext - fulltext, fulltext, standout)


def blend(hits: Ranking, weights: Weights, config: BlendConfig) -> Ranking:
    """Score each hit by the weighted sum of its signals, best first.

    Cosine and full-text relevance are min-max-normalised over the pool; a missing signal adds nothing, and a leg that
    is not counted has no part. Freshness is a share already and is not normalised: documents synced a minute apart stay
    close. The parts are stored as `contributions`.
    """
    signals = {
        "dense": normalised(hits, "cosine", min_span=config.min_cosine_span),
        "fulltext": normalised(hits, "fulltext"),
    }
    blended = []
    for place, hit in enumerate(hits):
        parts = {leg: weight * (signals[leg][place] or 0.0) for leg, weight in weights.legs.items()}
        parts["freshness"] = config.freshness * hit.signals.get("freshness", 0.0)
        blended.append(hit.scored(math.fsum(parts.values()), ScoreType.BLEND, parts))
    return tuple(sorted(blended, key=best_first))


def break_ties(hits: Ranking, *, trust: Callable[[Hit], int], tolerance: float) -> Ranking:
    """Rank the more trusted first among hits whose scores lie within `tolerance` of their group's best.

    Groups are taken from the top: a hit joins while it is within the tolerance of the group's first, so a
    chain of small steps cannot lift a hit by more than the tolerance. Scores of different types never tie.
    Expects hits best first, those of one type together.
    """
    ordered: list[Hit] = []
    for group in _near_ties(hits, tolerance):
        ordered.extend(sorted(group, key=lambda hit: (-trust(hit), *best_first(hit))))
    return tuple(ordered)


def _near_ties(hits: Ranking, tolerance: float) -> Iterator[list[Hit]]:
    group: list[Hit] = []
    for hit in hits:
        first = group[0] if group else hit
        is_tie = first.score_type is hit.score_type and on_unit_scale(first) - on_unit_scale(hit) <= tolerance
        if group and not is_tie:
            yield group
            group = []
        group.append(hit)
    if group:
        yield group


def on_unit_scale(hit: Hit) -> float:
    """Return the score on a unit scale: a logit as 1 / (1 + exp(-x)), by tanh so that none overflows, others as is."""
    return 0.5 * (1 + math.tanh(hit.score / 2)) if hit.score_type is ScoreType.LOGIT else hit.score
