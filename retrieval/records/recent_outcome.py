"""What a stored search found, read again with the reader's present access. Nothing is searched."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from corecube.access import Principal, scope_for
from retrieval.engine.deadline import Deadline
from retrieval.engine.query import read_query
from retrieval.engine.state import SearchState
from retrieval.engine.types import Answerability, Verdict
from retrieval.index.store import read_facts
from retrieval.models import SearchRecord
from retrieval.presets.catalog import preset_named
from retrieval.records.stored_passages import stored_passages
from retrieval.records.stored_trace import hits_of, spans_of
from retrieval.search.configuration import Configuration
from retrieval.search.outcome import SearchOutcome


def recent_outcome(record: SearchRecord, principal: Principal) -> SearchOutcome:
    """Return a stored search's hits and passages as they are now, without those deleted or out of scope.

    Where any is missing there is no answerability: its verdict included them. Raises UnknownPresetError.
    """
    preset = preset_named(record.preset)
    config, _ = preset.defaults.fitted(record.trace.get("values", {}))
    scope = scope_for(principal).only(record.connection_ids, reveal=False)
    stored = hits_of(record.trace)
    hits = read_facts(stored, scope=scope)
    state = SearchState(
        query=read_query(record.query, characters=config.query.retrieval_characters),
        scope=scope,
        deadline=Deadline.after(config.deadline_ms / 1000),
        now=record.at,
        top_k=record.top_k,
        hits=hits,
        access_checked=True,
        trace=spans_of(record.trace),
    )
    state = replace(state, passages=stored_passages(record.trace, scope=scope))
    if len(hits) == len(stored):
        state = replace(state, answerability=_answerability(record.trace.get("answerability")))
    configuration = Configuration(config=config, number=record.trace.get("version", 0))
    return SearchOutcome(record.pk, preset, record.preset_version, state, configuration)


def _answerability(stored: Mapping[str, Any] | None) -> Answerability | None:
    if not stored:
        return None
    return Answerability(
        verdict=Verdict(stored["verdict"]),
        confidence=stored["confidence"],
        is_calibrated=stored["calibrated"],
        signals=stored["signals"],
        reason=stored["reason"],
    )
