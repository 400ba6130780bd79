"""What a stored search found, read again in the scope that its reader has now. Nothing is searched."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from corecube.access import Principal, scope_for
from retrieval.configuration import Configuration
from retrieval.deadline import Deadline
from retrieval.facts import read_facts
from retrieval.models import SearchRecord
from retrieval.presets import preset_named
from retrieval.query import read_query
from retrieval.services import SearchOutcome
from retrieval.stages.assemble import header
from retrieval.stored_trace import chunk_id_of, hits_of, packed_hits, spans_of
from retrieval.types import Answerability, Passage, Ranking, SearchState, Verdict


def kept_outcome(record: SearchRecord, principal: Principal) -> SearchOutcome:
    """Return a stored search's hits and passages as they stand now; what is gone, or out of scope, is left out.

    Where anything is left out nothing is said of answerability: that was judged with it. Raises UnknownPresetError.
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
    state = replace(state, passages=_passages(record.trace, state, read_facts(packed_hits(record.trace), scope=scope)))
    if len(hits) == len(stored):
        state = replace(state, answerability=_answerability(record.trace.get("answerability")))
    configuration = Configuration(config=config, number=record.trace.get("version", 0))
    return SearchOutcome(record.pk, preset, record.preset_version, state, configuration)


def _passages(trace: Mapping[str, Any], state: SearchState, read: Ranking) -> tuple[Passage, ...]:
    """Return the packed passages that are still there, in the order in which they stood, numbered without gaps."""
    hits = {hit.chunk_id: hit for hit in read}
    packed = [it | {"id": chunk_id_of(it["chunk"])} for it in trace.get("passages", ())]
    there = [it for it in packed if it["id"] in hits]
    numbers = {it["number"]: number for number, it in enumerate(sorted(there, key=lambda it: it["number"]), start=1)}
    return tuple(
        Passage(numbers[it["number"]], hit, header(numbers[it["number"]], hit, state.scope), it["tokens"])
        for it in there
        if (hit := hits[it["id"]])
    )


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
