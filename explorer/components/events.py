"""Events inside stages, in words: recovery tiers, probes, the reranker, the density floor.

Events contain numbers and names, never text of a query or a document. Stored ones may lack fields of later releases.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from corecube.scope import AccessScope
from explorer import wording
from explorer.wording import WORDS
from retrieval.presets.consolidated.evidence.cascade import EXHAUSTED, OUT_OF_TIME, TIER_RESULT
from retrieval.presets.consolidated.evidence.recovery import SOURCE_RESULT
from retrieval.presets.contextpack.packing import PACK_COUNTED
from retrieval.presets.contextpack.stages.judge_relevance import RELEVANCE_SPENT

Event = Mapping[str, object]
_REPORTED_BY_NOTES: Final = frozenset({"section_setup", "headings_found", "pool_graded", "quota_cut", "chunk_retry"})
#: Fields that are not shown; older events named the compartment.
_HIDDEN: Final = frozenset({"event", "level", "connections", "compartment"})


@dataclass(frozen=True, slots=True)
class EventLine:
    """An event inside a stage."""

    text: str
    state: str = ""  #: A label before the text: "accepted", "skipped"; empty for none.
    tone: str = ""  #: "good", "warn", "bad", or empty.


def event_lines(events: Iterable[Event], scope: AccessScope) -> tuple[EventLine, ...]:
    """Return the events' lines in order, for a reader of `scope`: no compartment outside it is named.

    An unknown event is shown by its names and numbers; events that a note reports have no line.
    """
    return tuple(_line(event, scope) for event in events if event.get("event") not in _REPORTED_BY_NOTES)


def _line(event: Event, scope: AccessScope) -> EventLine:
    name = str(event.get("event", ""))
    if "tighten_applied" in event:
        return _tightened(event)
    if name == SOURCE_RESULT:
        return _probe(event, scope)
    if name in _LINES:
        return _LINES[name](event)
    values = ", ".join(f"{key.replace('_', ' ')} {_shown(value)}" for key, value in event.items() if key not in _HIDDEN)
    label = name.replace("_", " ").capitalize() or "Event"
    return EventLine(f"{label}: {values}" if values else label, tone="warn" if event.get("level") == "warning" else "")


def _tier(event: Event) -> EventLine:
    label = WORDS["recovery_tiers"].get(str(event.get("tier")), str(event.get("tier", "")).replace("_", " "))
    waited = _number(event, "waited_ms")
    clauses = (
        f"{_number(event, 'found'):,.0f} found",
        f"{_number(event, 'passed'):,.0f} above the threshold",
        _ms(event),
        f"after a wait of {waited:,.0f} ms" if waited else "",
    )
    state, tone = "nothing", "warn" if event.get("level") == "warning" else ""
    if event.get("accepted"):
        state, tone = "accepted", "good"
    elif event.get("error"):
        state, tone = "failed", "bad"
    return EventLine(f"{label}: {', '.join(filter(None, clauses))}", state, tone)


def _exhausted(event: Event) -> EventLine:
    tiers = int(_number(event, "tiers"))
    passed = f"No hits passed in {wording.counted(tiers, 'tier')}."
    return EventLine(passed if tiers else "Nothing is in scope; no tier was tried.", "exhausted", "bad")


def _probe(event: Event, scope: AccessScope) -> EventLine:
    diagnosis = str(event.get("diagnosis", ""))
    state = WORDS["diagnoses"].get(diagnosis, diagnosis.replace("_", " "))
    tone = WORDS["diagnosis_tones"].get(diagnosis, "warn")
    # The connections, by id, are of one compartment, which is named only if they are in scope.
    connections = event.get("connections")
    ids = connections if isinstance(connections, list | tuple) else ()
    named = {it.connection.compartment for it in scope.included if it.connection.id in ids}
    place = f" in {', '.join(sorted(named))}" if named else ""
    clauses = ", ".join(filter(None, (f"{_number(event, 'found'):,.0f} found", _ms(event))))
    return EventLine(f"{event.get('source_type', 'a source type')}{place}: {clauses}", state, tone)


def _spent(event: Event) -> EventLine:
    calls, prompt, completion = (int(_number(event, name)) for name in ("calls", "prompt_tokens", "completion_tokens"))
    tokens = f"{prompt:,} prompt tokens and {completion:,} completion tokens"
    estimated = ", estimated" if event.get("is_estimated") else ""
    model = event.get("model", "a language model")
    return EventLine(f"{wording.counted(calls, 'call')} of {model}: {tokens}{estimated}.")


def _rerank_skipped(event: Event) -> EventLine:
    reason, budget = str(event.get("reason", "")), ""
    if "remaining_ms" in event and "floor_ms" in event:
        budget = f" ({_number(event, 'remaining_ms'):,.0f} ms left, {_number(event, 'floor_ms'):,.0f} needed)"
    return EventLine(f"Cross-encoder skipped: {WORDS['rerank_skips'].get(reason, reason)}{budget}.", "skipped", "warn")


def _reranked(event: Event) -> EventLine:
    provider = str(event.get("provider", ""))
    batches = int(_number(event, "batches"))
    clauses = (
        f"{_number(event, 'chunks'):,.0f} chunks" if "chunks" in event else "",
        f"{batches:,} batches in parallel" if batches > 1 else "",
        f"{_number(event, 'failed_batches'):,.0f} of them failed" if event.get("failed_batches") else "",
        _ms(event),
        WORDS["breaker"].get(str(event.get("breaker", "")), ""),
    )
    details = ", ".join(filter(None, clauses))
    label = WORDS["rerank_providers"].get(provider, provider.replace("_", " "))
    return EventLine(
        f"Scored by {label}{': ' if details else ''}{details}", tone="bad" if event.get("failed_batches") else ""
    )


def _protected(event: Event) -> EventLine:
    let_in = {"recovered": _number(event, "recovered"), "of required types": _number(event, "survivors")}
    more = " and ".join(f"{count:,.0f} {what}" for what, count in let_in.items() if count)
    retained = f"Top {_number(event, 'keep'):,.0f} retained{f', plus {more}' if more else ''}"
    return EventLine(f"{retained}; {_number(event, 'cut'):,.0f} cut.")


def _shared(event: Event) -> EventLine:
    moved = wording.counted(int(_number(event, "moved_up")), "hit")
    return EventLine(f"{moved} moved up within the first {_number(event, 'places'):,.0f} ranks.")


def _tightened(event: Event) -> EventLine:
    if event.get("tighten_applied"):
        dropped = wording.counted(int(_number(event, "tighten_dropped_count")), "chunk")
        floor, place = _number(event, "tighten_effective_floor"), _number(event, "tighten_cliff_position")
        return EventLine(f"{dropped} below similarity {floor:.2f}, from rank {place + 1:.0f} on.", "cut")
    reason = str(event.get("tighten_skip_reason") or "")
    return EventLine(f"Not cut: {WORDS['tighten_skips'].get(reason, reason.replace('_', ' ') or 'unknown reason')}.")


def _ms(event: Event) -> str:
    return f"{_number(event, 'ms'):,.0f} ms" if "ms" in event else ""


def _number(event: Event, name: str) -> float:
    value = event.get(name)
    return float(value) if isinstance(value, int | float) else 0.0


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:,.4g}"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    return str(value) if value not in (None, "") else "none"


_LINES: Final[Mapping[str, Callable[[Event], EventLine]]] = {
    TIER_RESULT: _tier,
    EXHAUSTED: _exhausted,
    OUT_OF_TIME: lambda event: EventLine(
        f"Timed out after {wording.counted(int(_number(event, 'tiers')), 'tier')}.", "ended", "bad"
    ),
    "cross_encoder_skipped": _rerank_skipped,
    "reranked": _reranked,
    "protected": _protected,
    "shared": _shared,
    RELEVANCE_SPENT: _spent,
    PACK_COUNTED: lambda event: EventLine(
        f"{_number(event, 'tokens'):,.0f} tokens packed, counted with {event.get('tokenizer', 'the embedding model')}."
    ),
}
