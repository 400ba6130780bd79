"""One sentence on why a hit that was gathered as evidence stands before the next."""

from explorer.pages.explorer.verdict import by_score
from retrieval.engine.types import Hit
from retrieval.presets.consolidated.evidence.fairness import MERIT
from retrieval.presets.consolidated.evidence.precedence import PRECEDENCE
from retrieval.presets.consolidated.evidence.rerank_plan import Provider
from retrieval.presets.consolidated.evidence.section_state import SectionAsk
from retrieval.ranking.blend import on_unit_scale


def evidence_beats_next(hit: Hit, following: Hit | None, *, rank: int, ask: SectionAsk) -> str:
    """Return why the hit at `rank` stands before the one after it: by its share of the places, precedence or score.

    None follows the last hit of all.
    """
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
