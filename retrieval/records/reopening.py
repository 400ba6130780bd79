"""Reopening a stored search with its packed passages. Nothing is searched or stored."""

from dataclasses import replace

from django.conf import settings
from django.utils import timezone

from corecube.access import Principal, scope_for
from retrieval.engine.deadline import Deadline
from retrieval.engine.query import read_query
from retrieval.engine.state import SearchState
from retrieval.models import SearchRecord
from retrieval.presets.catalog import preset_named
from retrieval.ranking.packing import by_number
from retrieval.records.stored_passages import stored_passages
from retrieval.search.outcome import SearchOutcome
from retrieval.search.request import checked_query
from retrieval.stages.analyze import Analyze


def reopened(record: SearchRecord, principal: Principal, *, text: str) -> SearchOutcome:
    """Return what an answer to a stored search is written from: its query, which is `text`, its terms and passages.

    Passages are read with the principal's present access, without those deleted or out of scope, numbered without gaps
    in their order. Neighbours of a hit are not among the hits.
    Raises EmptyQueryError, QueryTooLongError, UnknownPresetError.
    """
    preset = preset_named(record.preset)
    config, _ = preset.defaults.fitted(record.trace.get("values", {}))
    scope = scope_for(principal).only(record.connection_ids, reveal=False)
    state = SearchState(
        query=read_query(checked_query(text), characters=config.query.retrieval_characters),
        scope=scope,
        deadline=Deadline.after(config.deadline_ms / 1000),
        now=timezone.now(),
        top_k=record.top_k,
    )
    passages = stored_passages(record.trace, scope=scope)
    hits = tuple(it.hit for it in by_number(passages) if it.is_hit)
    state = replace(Analyze(settings.CORECUBE_TEXT_SEARCH_CONFIG)(state), hits=hits, passages=passages)
    return SearchOutcome(record.pk, preset, record.preset_version, replace(state, access_checked=True))
