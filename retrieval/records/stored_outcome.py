"""Stored searches read again with the reader's present access. Nothing is searched or stored."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.conf import settings
from django.utils import timezone

from corecube.access import Principal, scope_for
from corecube.scope import AccessScope
from retrieval.engine.deadline import Deadline
from retrieval.engine.query import read_query
from retrieval.engine.state import SearchState
from retrieval.engine.types import Passage
from retrieval.index.store import read_facts
from retrieval.models import SearchRecord
from retrieval.presets.catalog import preset_named
from retrieval.presets.preset import Preset, PresetConfig
from retrieval.ranking.packing import by_number
from retrieval.records.stored_trace import answerability_of, chunk_id_of, hits_of, packed_hits, spans_of
from retrieval.search import runtime
from retrieval.search.configuration import Configuration
from retrieval.search.outcome import SearchOutcome
from retrieval.search.request import checked_query
from retrieval.stages.analyze import Analyze, Corrector
from retrieval.stages.assemble import header
from retrieval.stages.embed import Embed


def recent_outcome(record: SearchRecord, principal: Principal) -> SearchOutcome:
    """Return a stored search's hits and passages as they are now, without those deleted or out of scope.

    Where any is missing there is no answerability: its verdict included them. Raises UnknownPresetError.
    """
    preset, config, state = _begun(record, principal, text=record.query, now=record.at)
    stored = hits_of(record.trace)
    hits, passages = read_facts(stored, scope=state.scope), _stored_passages(record.trace, config, state.scope)
    state = replace(state, hits=hits, access_checked=True, trace=spans_of(record.trace), passages=passages)
    if len(hits) == len(stored):
        state = replace(state, answerability=answerability_of(record.trace))
    configuration = Configuration(config=config, number=record.trace.get("version", 0))
    return SearchOutcome(record.pk, preset, record.preset_version, state, configuration)


def reopened(record: SearchRecord, principal: Principal, *, text: str) -> SearchOutcome:
    """Return what an answer to a stored search is written from: its query, `text`, with its terms, vector and passages.

    There is no vector if the search had none. Passages are read with the principal's present access, without those
    deleted or out of scope, numbered without gaps in their order. Neighbours of a hit are not among the hits. Where any
    passage is missing there is no answerability.
    Raises EmptyQueryError, QueryTooLongError, UnknownPresetError.
    """
    preset, config, state = _begun(record, principal, text=checked_query(text), now=timezone.now())
    passages = _stored_passages(record.trace, config, state.scope)
    hits = tuple(it.hit for it in by_number(passages) if it.is_hit)
    state = replace(_embedded(_analyzed(state, record), record), hits=hits, passages=passages)
    if len(passages) == len(record.trace.get("passages", ())):
        state = replace(state, answerability=answerability_of(record.trace))
    return SearchOutcome(record.pk, preset, record.preset_version, replace(state, access_checked=True))


def _analyzed(state: SearchState, record: SearchRecord) -> SearchState:
    """Return the state with the query's terms; where the search corrected some, by the words that are in scope now."""
    notes = {note.code for span in spans_of(record.trace) for note in span.notes}
    corrector = Corrector.of(runtime.resources()) if "query_corrected" in notes else None
    return Analyze(settings.CORECUBE_TEXT_SEARCH_CONFIG, corrector=corrector)(state)


def _embedded(state: SearchState, record: SearchRecord) -> SearchState:
    """Return the state with the query's vector if the search had one."""
    spans = spans_of(record.trace)
    failed = any(note.degraded and note.code in Embed.about.notes for span in spans for note in span.notes)
    if failed or Embed.name not in {span.stage for span in spans}:
        return state
    resources = runtime.resources()
    return Embed(resources.encoder, resources.query_cache, calls=resources.calls)(state)


def _begun(
    record: SearchRecord, principal: Principal, *, text: str, now: datetime
) -> tuple[Preset, PresetConfig, SearchState]:
    preset = preset_named(record.preset)
    config, _ = preset.defaults.fitted(record.trace.get("values", {}))
    state = SearchState(
        query=read_query(text, characters=config.query.retrieval_characters),
        scope=scope_for(principal).only(record.connection_ids, reveal=False),
        deadline=Deadline.after(config.deadline_ms / 1000),
        now=now,
        top_k=record.top_k,
    )
    return preset, config, state


def _stored_passages(trace: Mapping[str, Any], config: PresetConfig, scope: AccessScope) -> tuple[Passage, ...]:
    """Return the packed passages that still exist and are in scope, in reading order, numbered without gaps."""
    hits = {hit.chunk_id: hit for hit in read_facts(packed_hits(trace), scope=scope)}
    packed = [it | {"id": chunk_id_of(it["chunk"])} for it in trace.get("passages", ())]
    there = [it for it in packed if it["id"] in hits]
    with_path = bool(config.values().get(f"{config.packing}.heading_path", 1))
    numbers = {it["number"]: number for number, it in enumerate(sorted(there, key=lambda it: it["number"]), start=1)}
    return tuple(
        Passage(number, hit, header(number, hit, scope, with_path=with_path), it["tokens"], it.get("role", ""))
        for it in there
        if (hit := hits[it["id"]]) and (number := numbers[it["number"]])
    )
