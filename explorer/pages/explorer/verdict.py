"""One sentence on why a hit ranks above the next."""

from collections.abc import Mapping
from typing import Final

from corecube.scope import AccessScope, TrustLevel
from explorer import wording
from retrieval.engine.types import Hit, ScoreType
from retrieval.presets.consolidated.evidence.fairness import MERIT
from retrieval.presets.consolidated.evidence.precedence import PRECEDENCE
from retrieval.presets.consolidated.evidence.rerank_plan import Provider
from retrieval.presets.consolidated.evidence.section_state import SectionAsk
from retrieval.ranking.blend import on_unit_scale
from retrieval.ranking.signals import SEAT

#: Smaller differences print as 0.000 and are not mentioned.
_VISIBLE: Final = 0.0005
_NAMED: Final = 2


def beats_next(hit: Hit, following: Hit | None, *, rank: int, scope: AccessScope, tolerance: float) -> str:
    """Return why the hit at `rank` ranks above the next: "Beats #4: full text +0.071, despite ...".

    `tolerance` is the score difference within which trust decides. `following` is None for the last hit.
    """
    if following is None:
        return "Last hit in the pool."
    name = f"#{rank + 1}"
    if hit.score_type is not following.score_type:
        return f"Ranks above {name}, which the reranker did not score."
    lead = hit.score - following.score
    unit_lead = on_unit_scale(hit) - on_unit_scale(following)
    trust, other = _trust(hit, scope), _trust(following, scope)
    if tolerance and trust > other and -tolerance <= unit_lead < _VISIBLE:
        levels = f"{wording.level(trust)} over {wording.level(other)}"
        return f"Beats {name} on trust: {levels}, with scores within {tolerance:g}."
    if SEAT in hit.signals or lead <= -_VISIBLE:
        return f"Ranks above {name}{_moved(hit)}"
    return by_score(name, hit, following)


def evidence_beats_next(hit: Hit, following: Hit | None, *, rank: int, ask: SectionAsk) -> str:
    """Return why an evidence hit ranks above the next: by its share of the ranks, by precedence or by score."""
    if following is None:
        return "Last hit in the pool."
    name = f"#{rank + 1}"
    if hit.signals.get(MERIT, rank) > following.signals.get(MERIT, rank + 1):
        return f"Ranks above {name}, whose document or source type already has its share of the top ranks."
    if following.provider != hit.provider:
        return f"Ranks above {name}, which the cross-encoder did not score."
    if hit.provider not in {Provider.CROSS_ENCODER, Provider.SEMANTIC_BM25}:
        return f"Ranks above {name} in pool order; neither was scored."
    boost = hit.signals.get(PRECEDENCE, 0.0) - following.signals.get(PRECEDENCE, 0.0)
    lead = on_unit_scale(hit) - on_unit_scale(following)
    if lead < 0 or (lead == 0 and boost > 0):
        types = f"{ask.type_of(hit)} over {ask.type_of(following)}"
        return f"Beats {name} on precedence: {types} {boost:+.4f}, with scores that differ by {abs(lead):.4f}."
    return by_score(name, hit, following)


def _moved(hit: Hit) -> str:
    """Return why a hit ranks higher than its score alone would put it."""
    if SEAT in hit.signals:
        return ": the query names its document."
    if hit.score_type is ScoreType.SIGNALS:
        return ", which repeats better hits."
    return " as the replacement for a higher-scored duplicate."


def _trust(hit: Hit, scope: AccessScope) -> TrustLevel:
    return scope.inclusion(hit.chunk.connection_id).connection.trust


def _differences(hit: Hit, following: Hit) -> Mapping[str, float]:
    """Return how much more each signal adds to the hit than to the next, the largest first."""
    signals = dict.fromkeys((*hit.contributions, *following.contributions))
    found = {name: hit.contributions.get(name, 0.0) - following.contributions.get(name, 0.0) for name in signals}
    return dict(sorted(found.items(), key=lambda item: -abs(item[1])))


def by_score(name: str, hit: Hit, following: Hit) -> str:
    """Return a hit's lead over the next by parts: "Beats #4: full text +0.071, despite ..."."""
    differences, lead = _differences(hit, following), hit.score - following.score
    is_by_rubric = hit.score_type is ScoreType.RUBRIC
    ahead = [_term(signal, value) for signal, value in differences.items() if value >= _VISIBLE]
    behind = [_term(signal, value) for signal, value in differences.items() if value <= -_VISIBLE]
    if lead < _VISIBLE and is_by_rubric:
        return f"Same grade as {name}; the higher blended score ranks first."
    if lead < _VISIBLE:
        return f"Tied with {name}; ties are sorted by chunk ID."
    if not ahead:
        return f"Beats {name} by {lead:.3f}."
    despite = f", despite {behind[0]}" if behind else ""
    return f"Beats {name}: {', '.join(ahead[:_NAMED])}{despite}."


def _term(signal: str, difference: float) -> str:
    sign = "+" if difference > 0 else "\N{MINUS SIGN}"
    return f"{wording.signal_word(signal)} {sign}{abs(difference):.3f}"
