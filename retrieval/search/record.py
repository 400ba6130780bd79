"""The fourth step of a search: its trace is stored."""

import logging
from dataclasses import replace

from django.conf import settings

from retrieval.engine.pipeline import HYBRID
from retrieval.engine.stored_filter import FullFilter, filter_json
from retrieval.errors import SearchTimeoutError
from retrieval.index.writer import add_later
from retrieval.models import SearchRecord
from retrieval.presets.consolidated.evidence.section_state import SectionAsk
from retrieval.presets.contextpack.judge import Judge
from retrieval.search.latency_metrics import observe_search
from retrieval.search.outcome import SearchOutcome
from retrieval.search.prepare import PreparedSearch
from retrieval.search.relevance import ModelJudge
from retrieval.search.request import AllowedRequest
from retrieval.search.tracing import trace_json

logger = logging.getLogger(__name__)


def record(outcome: SearchOutcome, prepared: PreparedSearch) -> SearchOutcome:
    """Return the outcome, its trace stored; a store that takes too long is not waited for."""
    try:
        add_later(_row(outcome, prepared.allowed, index=prepared.resources.index.id))
        judge = prepared.resources.part(Judge)
        if judge is not None and isinstance(judge.ask, ModelJudge):
            judge.ask.charge(outcome.id)
    except SearchTimeoutError:
        logger.error("search.unrecorded id=%s preset=%s", outcome.id, outcome.preset.name)  # noqa: TRY400
        outcome = replace(outcome, is_recorded=False)
    observe_search(outcome.preset.name, outcome.seconds, outcome.trace)
    logger.info("search.done id=%s preset=%s hits=%d", outcome.id, outcome.preset.name, len(outcome.hits))
    return outcome


def _row(outcome: SearchOutcome, allowed: AllowedRequest, *, index: int) -> SearchRecord:
    request, principal = allowed.request, allowed.principal
    state, judged = outcome.state, outcome.state.answerability
    keeps_text = settings.CORECUBE_KEEP_QUERY_TEXT
    ran_with = outcome.configuration.trace_json() | {"index": index, "values": _values(outcome)}
    narrowing = {"include": list(request.narrowing.include), "exclude": list(request.narrowing.exclude)}
    section = _section_json(request.section, keep_words=keeps_text) if request.section else {}
    left = filter_json(FullFilter(request.filter, request.conditions), keep_words=keeps_text)
    return SearchRecord(
        id=outcome.id,
        user=principal.user,
        key=principal.key,
        actor=principal.actor,
        for_another=principal.actor is not None,
        surface=request.surface,
        preset=outcome.preset.name,
        preset_version=outcome.preset_version,
        query=state.query.text if keeps_text else "",
        top_k=request.top_k or outcome.config.default_top_k,
        connection_ids=state.scope.connection_ids,
        milliseconds=outcome.seconds * 1000,
        hit_count=len(outcome.hits),
        degraded=list(state.degraded),
        is_ordinary=_is_ordinary(outcome),
        verdict=judged.verdict.value if judged else "",
        confidence=judged.confidence if judged else None,
        trace=ran_with | {"narrowing": narrowing, "filter": left} | section | trace_json(state, keep_words=keeps_text),
    )


def _is_ordinary(outcome: SearchOutcome) -> bool:
    """Return whether a search ran as its preset does: with its numbers, every leg, and at least its time."""
    configuration = outcome.configuration
    is_hurried = outcome.state.deadline.budget_seconds < outcome.config.deadline_ms / 1000
    return not (configuration.overrides or configuration.is_draft or configuration.mode != HYBRID or is_hurried)


def _section_json(ask: SectionAsk, *, keep_words: bool) -> dict[str, str]:
    return {"section": ask.name, **({"subject": ask.subject} if keep_words else {})}


def _values(outcome: SearchOutcome) -> dict[str, float]:
    if outcome.config == outcome.preset.defaults:
        return {}
    shipped = outcome.preset.defaults.values()
    return {name: value for name, value in outcome.config.values().items() if value != shipped[name]}
