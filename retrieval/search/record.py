"""The fourth step of a search: its trace is stored as JSON without any document text, and its latency is counted."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache, partial
from typing import Any, Final

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from prometheus_client import Histogram, disable_created_metrics

from retrieval.engine.pipeline import HYBRID
from retrieval.engine.state import SearchState, Span
from retrieval.engine.stored_filter import FullFilter, filter_json
from retrieval.engine.types import Hit
from retrieval.errors import SearchTimeoutError
from retrieval.index.writer import add_later
from retrieval.models import SearchRecord
from retrieval.presets.contextpack.judge import Judge
from retrieval.presets.preset import PresetConfig
from retrieval.ranking.measures import MEASURED_DEPTH
from retrieval.search.draft import Draft
from retrieval.search.outcome import SearchOutcome
from retrieval.search.prepare import ModelJudge, PreparedSearch
from retrieval.search.record_writer import record_writer
from retrieval.search.request import AllowedRequest

logger = logging.getLogger(__name__)

_CONFIGS: Final = 32  #: Configurations whose changes from the shipped one are cached.

# A histogram's time of creation would be a series more for each of its labels.
disable_created_metrics()  # type: ignore[no-untyped-call]

SEARCH_SECONDS: Final = Histogram(
    "corecube_search_duration_seconds", "Latency of searches, without the wait for a slot.", ("preset",), registry=None
)
STAGE_SECONDS: Final = Histogram(
    "corecube_search_stage_duration_seconds",
    "Latency of the stages of searches; those that run in parallel count one by one.",
    ("preset", "stage"),
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
    registry=None,
)


def record(outcome: SearchOutcome, prepared: PreparedSearch, *others: PreparedSearch) -> SearchOutcome:
    """Return the outcome with its trace stored, or soon stored; a store that takes too long is not waited for.

    What language models took to judge counts to the search, also of `others` that belong to it.
    """
    make = partial(_row, outcome, prepared.allowed, index=prepared.resources.index.id, at=timezone.now())
    judges = [it.resources.part(Judge) for it in (prepared, *others)]
    asked = [it.ask for it in judges if it and isinstance(it.ask, ModelJudge) and it.ask.is_charged]
    is_early = asked or transaction.get_connection().in_atomic_block
    if not is_early and (pending := record_writer.add(outcome.id, make)):
        outcome = replace(outcome, pending=pending)
    else:
        outcome = _recorded(outcome, make, asked)
    preset = outcome.preset.name
    SEARCH_SECONDS.labels(preset).observe(outcome.seconds)
    for span in outcome.trace:
        STAGE_SECONDS.labels(preset, span.stage).observe(span.seconds)
    logger.info("search.done id=%s preset=%s hits=%d", outcome.id, preset, outcome.hit_count)
    return outcome


def _recorded(outcome: SearchOutcome, make: Callable[[], SearchRecord], asked: Sequence[ModelJudge]) -> SearchOutcome:
    try:
        add_later(make())
        for judge in asked:
            judge.charge(outcome.id)
    except SearchTimeoutError:
        logger.error("search.unrecorded id=%s preset=%s", outcome.id, outcome.preset.name)  # noqa: TRY400
        return replace(outcome, is_recorded=False)
    return outcome


def _row(outcome: SearchOutcome, allowed: AllowedRequest, *, index: int, at: datetime) -> SearchRecord:
    request, principal = allowed.request, allowed.principal
    state, judged = outcome.state, outcome.state.answerability
    keeps_text = settings.CORECUBE_KEEP_QUERY_TEXT
    configuration, values = outcome.configuration, _changed_values(outcome.config, outcome.preset.defaults)
    ran_with = configuration.trace_json() | {"index": index, "values": values}
    narrowing = {"include": list(request.narrowing.include), "exclude": list(request.narrowing.exclude)}
    section = {"section": request.section.name} if request.section else {}
    if request.section and keeps_text:
        section["subject"] = request.section.subject
    is_hurried = state.deadline.budget_seconds < outcome.config.deadline_ms / 1000
    draft = state.part(Draft)
    has_own_numbers = configuration.overrides or configuration.is_draft or request.values is not None
    is_other = has_own_numbers or configuration.mode != HYBRID or is_hurried or draft
    interleaved = {"interleaving": draft.as_json()} if draft else {}
    left = filter_json(FullFilter(request.filter, request.conditions), keep_words=keeps_text)
    return SearchRecord(
        id=outcome.id,
        at=at,
        user=principal.user,
        key=principal.key,
        actor=principal.actor,
        for_another=principal.actor is not None,
        surface=request.surface,
        experiment_id=draft.experiment if draft else None,
        preset=outcome.preset.name,
        preset_version=outcome.preset_version,
        query=state.query.text if keeps_text else "",
        top_k=request.top_k or outcome.config.default_top_k,
        connection_ids=state.scope.connection_ids,
        milliseconds=outcome.seconds * 1000,
        hit_count=outcome.hit_count,
        degraded=list(state.degraded),
        is_ordinary=not is_other,
        verdict=judged.verdict.value if judged else "",
        confidence=judged.confidence if judged else None,
        trace=ran_with
        | {"narrowing": narrowing, "filter": left}
        | section
        | interleaved
        | trace_json(state, keep_words=keeps_text),
    )


@lru_cache(maxsize=_CONFIGS)
def _changed_values(config: PresetConfig, defaults: PresetConfig) -> Mapping[str, float]:
    shipped = defaults.values()
    return {name: value for name, value in config.values().items() if value != shipped[name]}


def trace_json(state: SearchState, *, keep_words: bool) -> dict[str, Any]:
    """Return the trace of a finished search: spans, hits with their scores, passages by number, the verdict.

    The ranking names the best hits, also beyond those wanted, each with the hash of its text. Without `keep_words` the
    query's words are left out everywhere, and so is the verdict's sentence, which can contain them.
    """
    judged = state.answerability
    best = state.hits[: max(state.top_k, MEASURED_DEPTH)]
    return {
        "spans": [span_json(span, keep_words=keep_words) for span in state.trace],
        "hits": [hit_json(hit, keep_words=keep_words) for hit in best[: state.top_k]],
        "ranking": [[str(hit.chunk_id), hit.facts.content_hash if hit.facts else ""] for hit in best[:MEASURED_DEPTH]],
        "passages": [
            {
                "number": passage.number,
                "chunk": str(passage.hit.chunk_id),
                "tokens": passage.token_count,
                "role": passage.role,
            }
            for passage in state.passages
        ],
        "answerability": judged
        and {
            "verdict": judged.verdict.value,
            "confidence": judged.confidence,
            "calibrated": judged.is_calibrated,
            "reason": judged.reason,
            "signals": dict(judged.signals),
            "intercept": judged.intercept,
            "contributions": dict(judged.contributions),
        },
    }


def span_json(span: Span, *, keep_words: bool = True) -> dict[str, Any]:
    """Return one span; a note's text may hold words of the query, and is left out if it quotes documents."""
    return {
        "stage": span.stage,
        "parent": span.parent,
        "ms": round(span.seconds * 1000, 3),
        "hits_in": span.hits_in,
        "hits_out": span.hits_out,
        "drops": [[str(drop.chunk_id), drop.reason, drop.detail] for drop in span.drops],
        "notes": [
            {"code": note.code, "text": note.text if keep_words and not note.quotes else "", "degraded": note.degraded}
            for note in span.notes
        ],
        "events": [dict(event) for event in span.events],
    }


def hit_json(hit: Hit, *, keep_words: bool = True) -> dict[str, Any]:
    """Return one hit's score breakdown."""
    return {
        "chunk": str(hit.chunk_id),
        "score": hit.score,
        "score_type": hit.score_type.value,
        "ranks": dict(hit.ranks),
        "signals": dict(hit.signals),
        "contributions": dict(hit.contributions),
        "provider": hit.provider,
        "matches": [
            [match.lexeme if keep_words else "", match.idf, match.share, match.weight] for match in hit.matches
        ],
    }
