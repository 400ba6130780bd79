"""The stages of a search: a funnel with what each returned, dropped and cost, and a timeline of all spans."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import Any, Final

from django.utils.functional import SimpleLazyObject

from corecube.http import HtmxHttpRequest
from corecube.scope import AccessScope
from explorer import wording
from explorer.charts.waterfall import stage_colour, timed
from explorer.components.bars import percent, stacked
from explorer.components.drops import ChunkLabels, drop_list
from explorer.components.events import event_lines
from explorer.wording import milliseconds
from retrieval.engine.about import StageGroup
from retrieval.engine.state import SearchState, Span
from retrieval.engine.tunables import TunableFacts, Tunables
from retrieval.presets.preset import PresetConfig
from retrieval.search.outcome import SearchOutcome

#: Units of stages that leave chunks, whatever these are called.
_CHUNK_UNITS: Final = frozenset({"hits", "passages", "chunks"})
#: What the strip folds the groups of stages into, in order.
_PARTS: Final = {
    "retrieve": frozenset({StageGroup.QUESTION, StageGroup.FIND}),
    "fuse": frozenset({StageGroup.MERGE}),
    "rank": frozenset({StageGroup.RANK}),
    "pack": frozenset({StageGroup.PACK}),
}

Setting = tuple[str, float, TunableFacts]  #: The key of a setting in the configuration, its value and declaration.


def funnel(outcome: SearchOutcome, labels: ChunkLabels) -> dict[str, Any]:
    """Return the funnel of a search. Legs replace the stage that ran them."""
    state = outcome.state
    return _funnel(outcome.trace, outcome.config, labels, state.scope, seconds=outcome.seconds, state=state)


def stored_funnel(
    spans: Sequence[Span], config: PresetConfig, labels: ChunkLabels, scope: AccessScope
) -> dict[str, Any]:
    """Return the funnel of a stored search, of which only hits are counted; `scope` is what its reader may see."""
    seconds = sum(span.seconds for span in spans if not span.parent)
    return _funnel(spans, config, labels, scope, seconds=seconds, state=None)


def opened_part(request: HtmxHttpRequest, panels: Mapping[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """Return the template of a part, a stage or the verdict that htmx draws as it opens, and its variables.

    None for any other request.
    """
    kind, _, name = (request.htmx.target or "").partition("-")
    if kind == "verdict" and panels["answerability"]:
        return "explorer/explorer/_answerability.html", {"result": panels["answerability"]}
    if kind == "part":
        part = next((it for it in panels["funnel"]["parts"] if it["name"] == name), None)
        return ("explorer/components/_part.html", {"part": part}) if part else None
    if kind == "stage":
        cell = next((it for it in panels["funnel"]["cells"] if it["span"].stage == name), None)
        return ("explorer/components/_stage.html", {"cell": cell}) if cell else None
    return None


def _funnel(
    spans: Sequence[Span],
    config: PresetConfig,
    labels: ChunkLabels,
    scope: AccessScope,
    *,
    seconds: float,
    state: SearchState | None,
) -> dict[str, Any]:
    parents = {span.parent for span in spans}
    leaves = [span for span in spans if span.stage not in parents]
    slowest = max((span.seconds for span in leaves), default=0.0)
    parts = _parts_of(spans)

    def cell(span: Span) -> dict[str, Any]:
        count, unit = _count(span, state)
        return {
            "span": span,
            "part": parts[span.stage],
            "chunks": count if unit in _CHUNK_UNITS else None,
            "label": wording.stage_label(span.stage),
            "purpose": wording.stage_purpose(span.stage),
            "count": "" if count is None else f"{count:,}",
            "unit": unit,
            "dropped": removed(span),
            "milliseconds": milliseconds(span.seconds),
            "bar": round(percent(span.seconds, slowest), 1),
            "degraded": any(note.degraded for note in span.notes),
            # Only read where the stage is open.
            "settings": SimpleLazyObject(partial(settings_of, span.stage, config)),
            "drops": SimpleLazyObject(partial(drop_list, span.drops, labels)),
            "events": SimpleLazyObject(partial(event_lines, span.events, scope)),
        }

    clock = stacked({span.stage: span.seconds for span in spans if not span.parent}, full=config.deadline_ms / 1000)
    cells = tuple(map(cell, leaves))
    return {
        "cells": cells,
        "parts": tuple(_parts(cells, spans, parts)),
        "clock": clock,
        "milliseconds": milliseconds(seconds),
        "deadline_ms": config.deadline_ms,
    }


def _parts_of(spans: Sequence[Span]) -> dict[str, str]:
    """Return the part of the strip to which each stage belongs; a stage of an earlier release ranks.

    The parts follow one another as the stages do: one that searches again while the pool is ranked is a part of that.
    """
    names = tuple(_PARTS)
    found, reached = {}, 0
    for span in spans:
        about = wording.about(span.stage)
        group = about.group if about else StageGroup.RANK
        reached = max(reached, next(place for place, groups in enumerate(_PARTS.values()) if group in groups))
        found[span.stage] = names[reached]
    return found


def _parts(
    cells: Sequence[dict[str, Any]], spans: Sequence[Span], parts: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """Yield the parts of the strip that ran, each with its stages, its share of the time and the chunks it left."""
    seconds = dict.fromkeys(_PARTS, 0.0)
    for span in spans:
        # Legs run at the same time: the stage that ran them counts.
        if not span.parent:
            seconds[parts[span.stage]] += span.seconds
    total = sum(seconds.values())
    for name in _PARTS:
        own = tuple(cell for cell in cells if cell["part"] == name)
        if own:
            left, unit = _left(own)
            yield {
                "name": name,
                "label": wording.WORDS["strip_parts"][name],
                "purpose": wording.WORDS["strip_purposes"][name],
                "cells": own,
                "fill": stage_colour(own[-1]["span"].stage),
                "stages": frozenset(cell["span"].stage for cell in own),
                "chunks": left,
                "unit": unit,
                "dropped": sum(cell["dropped"] for cell in own),
                "milliseconds": milliseconds(seconds[name]),
                "bar": round(percent(seconds[name], total), 1),
                "degraded": any(cell["degraded"] for cell in own),
            }


def _left(cells: Sequence[dict[str, Any]]) -> tuple[int | None, str]:
    """Return how many chunks the last of these stages left, and their unit; None if none counts chunks.

    Of several legs it counts the hits: a chunk that two of them found is two hits.
    """
    counted = [cell for cell in cells if cell["chunks"] is not None]
    if not counted:
        return None, ""
    parent = counted[-1]["span"].parent
    legs = [cell for cell in counted if cell["span"].parent == parent] if parent else counted[-1:]
    return sum(int(cell["chunks"]) for cell in legs), "hit" if len(legs) > 1 else "chunk"


def removed(span: Span) -> int:
    """Return how many hits a stage removed: its drops, or hits that it lost without a drop."""
    return max(len(span.drops), span.hits_in - span.hits_out, 0)


def _count(span: Span, state: SearchState | None) -> tuple[int | None, str]:
    """Return what a stage returned and its unit; None for a stage that returns nothing to count."""
    about = wording.about(span.stage)
    if state is None:
        leaves_chunks = about is not None and about.unit in _CHUNK_UNITS
        is_counted = leaves_chunks or ((span.hits_in or span.hits_out) and (about is None or about.unit))
        return (span.hits_out, "hits") if is_counted else (None, "")
    if about is None:
        return span.hits_out, "hits"
    count = about.left(state) if about.left else span.hits_out if about.unit else None
    return (None, "") if count is None else (count, about.unit)


def settings_of(stage: str, config: PresetConfig) -> tuple[Setting, ...]:
    """Return the settings of a stage, by their keys in the configuration."""
    about = wording.about(stage)
    section = about.section if about else ""
    if section not in {item.name for item in fields(config)}:
        return ()
    part: Tunables = getattr(config, section)
    return tuple(
        (f"{section}.{facts.name}", getattr(part, facts.name), facts)
        for facts in part.declared()
        if f"{section}.{facts.name}" not in config.unused
    )


def span_rows(spans: Sequence[Span], scope: AccessScope) -> tuple[dict[str, Any], ...]:
    """Return the spans of a search as rows, each parent before its children; `scope` is what their reader may see."""
    total = sum(span.seconds for span in spans if not span.parent)
    entered = _entered(spans)
    return tuple(
        {
            "span": span,
            "entered": entered[span.stage],
            "label": wording.stage_label(span.stage),
            "purpose": wording.stage_purpose(span.stage),
            "dropped": removed(span),
            "milliseconds": milliseconds(span.seconds),
            "x": round(percent(started, total), 2),
            "width": round(percent(span.seconds, total), 2),
            "events": event_lines(span.events, scope),
        }
        for span, started in timed(spans)
    )


def _entered(spans: Sequence[Span]) -> dict[str, int]:
    """Return how many chunks each stage got: for one that merges rankings those of all rankings."""
    entered, left = {}, 0
    for span in spans:
        entered[span.stage] = span.hits_in or (0 if span.parent else left)
        left = left if span.parent else span.hits_out
    return entered
