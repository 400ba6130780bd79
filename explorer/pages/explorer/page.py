"""The panels of one search, computed from its outcome: hits, lanes, and why a hit ranks above the next."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from corecube.scope import AccessScope, ConnectionFacts, FreshnessBasis, TrustLevel
from explorer import wording
from explorer.charts.chart import ABSENT
from explorer.charts.contributions import contributions
from explorer.charts.scores import score_charts
from explorer.charts.waterfall import waterfall
from explorer.components.answerability import answerability_panel
from explorer.components.badges import Badge, badges, hit_badges
from explorer.components.bars import score_bar
from explorer.components.chunk_tables import hit_table
from explorer.components.context import context_panel
from explorer.components.drops import ChunkLabels
from explorer.components.funnel import funnel, span_rows
from explorer.components.lanes import Facts, drop_words, lane_sources, lanes_panel, shown_hits
from explorer.components.preset_numbers import version_label
from explorer.components.snippets import hit_text
from explorer.pages.explorer.ledger import LedgerSource, ledger, leg_rank
from retrieval.engine.types import ChunkFacts, ChunkId, Hit, QueryTerms, ScoreType
from retrieval.index.store import TextSearch, read_facts
from retrieval.presets.consolidated.evidence.order import MERIT, PRECEDENCE
from retrieval.presets.consolidated.evidence.scoring import Provider
from retrieval.presets.consolidated.evidence.section_state import SectionAsk, SectionState
from retrieval.ranking.blend import on_unit_scale
from retrieval.ranking.signals import SEAT
from retrieval.search.outcome import SearchOutcome
from retrieval.stages.fulltext import FulltextConfig

_VISIBLE: Final = 0.0005  #: Smaller differences print as 0.000 and are not mentioned.
_NAMED: Final = 2


def lanes_of(outcome: SearchOutcome) -> dict[str, Any]:
    """Return a search's lanes. Chunks that were deleted since or are out of scope have a card without text."""
    sources = lane_sources(outcome)
    state = outcome.state
    search = outcome.config.fulltext.text_search
    read = completed(shown_hits(sources), scope=state.scope, terms=state.terms, search=search)
    return lanes_panel(sources, Facts(read, state.scope, drop_words(outcome)))


def completed(
    hits: Mapping[ChunkId, Hit], *, scope: AccessScope, terms: QueryTerms, search: TextSearch | None = None
) -> dict[ChunkId, Hit]:
    """Return the hits in scope with their facts; missing facts are read by one statement."""
    known = {chunk_id: hit for chunk_id, hit in hits.items() if hit.facts and scope.allows(hit.facts.connection_id)}
    unread = tuple(hit for hit in hits.values() if hit.facts is None)
    read = read_facts(unread, scope=scope, terms=terms.terms, search=search or FulltextConfig().text_search)
    return known | {hit.chunk_id: hit for hit in read}


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


def by_score(name: str, hit: Hit, following: Hit) -> str:
    """Return a hit's lead over the next by parts: "Beats #4: full text +0.071, despite ..."."""
    signals = dict.fromkeys((*hit.contributions, *following.contributions))
    found = {name: hit.contributions.get(name, 0.0) - following.contributions.get(name, 0.0) for name in signals}
    # The largest first.
    differences = dict(sorted(found.items(), key=lambda item: -abs(item[1])))
    lead = hit.score - following.score
    is_by_rubric = hit.score_type is ScoreType.RUBRIC
    ahead = [_term(signal, value) for signal, value in differences.items() if value >= _VISIBLE]
    behind = [_term(signal, value) for signal, value in differences.items() if value <= -_VISIBLE]
    if lead < _VISIBLE and is_by_rubric:
        return f"Same grade as {name}; the higher blended score ranks first."
    if lead < _VISIBLE:
        return f"Same score as {name}. Equal scores are ordered by chunk ID."
    if not ahead:
        return f"Beats {name} by {lead:.3f}."
    despite = f", despite {behind[0]}" if behind else ""
    return f"Beats {name}: {', '.join(ahead[:_NAMED])}{despite}."


def _term(signal: str, difference: float) -> str:
    sign = "+" if difference > 0 else "\N{MINUS SIGN}"
    return f"{wording.SIGNAL_WORDS.get(signal, signal)} {sign}{abs(difference):.3f}"


def hit_rows(outcome: SearchOutcome) -> tuple[dict[str, Any], ...]:
    """Return the rows of the returned hits, best first, without hits that the deadline left without facts."""
    source = LedgerSource.of(outcome)
    hits = [hit for hit in outcome.hits if hit.facts is not None]
    return tuple(_row(rank, hit, source) for rank, hit in enumerate(hits, start=1))


def _row(rank: int, hit: Hit, source: LedgerSource) -> dict[str, Any]:
    outcome, chunk = source.outcome, hit.chunk
    connection = outcome.state.scope.inclusion(chunk.connection_id).connection
    title, snippet = hit_text(hit, connection)
    numbers = {passage.hit.chunk_id: passage.number for passage in reversed(outcome.passages)}
    return {
        "hit": hit,
        "rank": rank,
        "title": title,
        "snippet": snippet,
        "table": hit_table(hit, connection, snippet),
        "source": connection.name,
        "trust": wording.level(connection.trust),
        "age": age(chunk, connection, outcome.state.now),
        "pages": wording.place(chunk, chunk.source_type),
        "bar": score_bar(hit, legs=frozenset(outcome.state.rankings), full=outcome.config.highest_score),
        "legs": tuple(_legs(hit, source)),
        "citation": numbers.get(hit.chunk_id),
        "ledger": ledger(hit, source),
        "verdict": _verdict(rank, hit, outcome),
        "badges": (*hit_badges(hit), *_tie(rank, hit, outcome)),
    }


def _legs(hit: Hit, source: LedgerSource) -> Iterator[dict[str, Any]]:
    for leg in source.outcome.state.rankings:
        rank = hit.ranks.get(leg)
        yield {
            "leg": leg,
            "label": wording.leg_label(leg),
            "rank": str(rank or ABSENT),
            "absent": rank is None,
            "detail": leg_rank(hit, leg, source),
        }


def _verdict(rank: int, hit: Hit, outcome: SearchOutcome) -> str:
    hits = outcome.state.hits
    following = hits[rank] if rank < len(hits) and hits[rank].facts is not None else None
    section = outcome.state.part(SectionState)
    if section is not None:
        return evidence_beats_next(hit, following, rank=rank, ask=section.ask)
    return beats_next(hit, following, rank=rank, scope=outcome.state.scope, tolerance=outcome.config.tie_tolerance)


def _tie(rank: int, hit: Hit, outcome: SearchOutcome) -> Iterator[Badge]:
    """Yield a badge for a hit before one with a higher score."""
    following = outcome.state.hits[rank : rank + 1]
    tolerance = outcome.config.tie_tolerance
    if tolerance and following and hit.score_type is following[0].score_type and hit.score < following[0].score:
        yield Badge("tie", f"Tie within {tolerance:g}: the more trusted source first.")


def age(chunk: ChunkFacts, connection: ConnectionFacts, now: datetime) -> str:
    """Return a chunk's age by the freshness basis of its connection: "synced 3 days ago", "changed 2 months ago"."""
    if connection.freshness_basis is FreshnessBasis.MODIFIED and chunk.modified_at is not None:
        return f"changed {wording.ago(chunk.modified_at, now)}"
    return f"synced {wording.ago(chunk.synced_at, now)}"


def result_panels(outcome: SearchOutcome, *, labels: ChunkLabels, tab: str) -> dict[str, Any]:
    """Return the panels of a search, large ones only for their tab; `labels` has the chunks that its reader may see."""
    hits, stages = hit_rows(outcome), funnel(outcome, labels)
    found = wording.counted(len(hits), "hit") if hits else "No results"
    return {
        "trace_id": outcome.id,
        "preset": outcome.preset.name,
        "preset_version": outcome.preset_version,
        "version": version_label(outcome.version_number),
        "is_draft": outcome.configuration.is_draft,
        "principal": outcome.state.scope.principal,
        "top_k": outcome.state.top_k,
        "badges": badges(outcome.trace),
        "funnel": stages,
        "hits": hits,
        "announcement": f"{found} in {stages['milliseconds']} milliseconds.",
        "context": context_panel(outcome, labels),
        "answerability": answerability_panel(outcome.state.answerability, outcome.config.answerability),
        "skipped": outcome.skipped,
        **(_OF_TABS[tab](outcome) if tab in _OF_TABS else {}),
    }


def _score_panels(outcome: SearchOutcome) -> dict[str, Any]:
    return {"contributions": contributions(outcome), "scores": score_charts(outcome)}


def _trace_panels(outcome: SearchOutcome) -> dict[str, Any]:
    config = outcome.config
    return {
        "trace": span_rows(outcome.trace, outcome.state.scope),
        "waterfall": waterfall(outcome.trace, deadline_ms=config.deadline_ms, soft_share=config.soft_share),
    }


_OF_TABS: Final = {"scores": _score_panels, "trace": _trace_panels}
