"""One query to every preset, and the results side by side: hits, overlap, time, cost and packed context."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from typing import Any, Final

from corecube.access import Principal
from corecube.errors import CoreCubeError
from explorer import wording
from explorer.charts.rank_flow import preset_flow
from explorer.components.answerability import answerability_panel
from explorer.components.badges import badges, had_vector
from explorer.components.bars import BarPart, stacked
from explorer.components.context import context_panel
from explorer.components.drops import chunk_name
from explorer.components.lanes import Card, face
from explorer.components.preset_numbers import version_label
from explorer.components.search_page import failure_of
from explorer.wording import WORDS, milliseconds
from retrieval.engine.about import StageGroup
from retrieval.engine.state import Span
from retrieval.engine.types import ChunkId, Hit
from retrieval.presets.catalog import PRESETS, TUNED
from retrieval.presets.contextpack.stages.judge_relevance import RELEVANCE_SPENT
from retrieval.presets.preset import Preset
from retrieval.ranking.comparison import alone, overlap_at, places_of
from retrieval.search.outcome import SearchOutcome
from retrieval.search.request import SearchRequest
from retrieval.search.service import search

logger = logging.getLogger(__name__)

_SERVER_ERROR: Final = 500
DEPTH: Final = 10
#: Groups of stages in search order, with labels.
GROUPS: Final = WORDS["stage_groups"]


@dataclass(frozen=True, slots=True)
class Attempt:
    """The outcome of one preset, or its error."""

    preset: Preset
    outcome: SearchOutcome | None = None
    error: CoreCubeError | None = None


def usable_presets(principal: Principal, *, references: bool = False) -> tuple[Preset, ...]:
    """Return the tuned presets that a principal may search with, and their reference versions if wanted."""
    presets = PRESETS if references else TUNED
    return tuple(preset for preset in presets.values() if principal.may_use(preset.name))


def ask_each(asking: SearchRequest, principal: Principal, *, references: bool = False) -> tuple[Attempt, ...]:
    """Search with each preset, one after another so that they do not slow each other down."""
    presets = usable_presets(principal, references=references)
    return tuple(_attempt(it, replace(asking, preset=it.name), principal) for it in presets)


def _attempt(preset: Preset, request: SearchRequest, principal: Principal) -> Attempt:
    try:
        return Attempt(preset, search(request, principal=principal))
    except CoreCubeError as error:
        if error.status >= _SERVER_ERROR:
            logger.exception("side_by_side.failed preset=%s code=%s", preset.name, error.code)
        return Attempt(preset, error=error)


@dataclass(frozen=True, slots=True)
class _SharedHit:
    card: Card
    found: int
    #: The other presets, each with its rank; None if it did not return the hit.
    elsewhere: tuple[tuple[str, int | None], ...]


def side_by_side_panel(attempts: Sequence[Attempt], *, costs: Mapping[str, Decimal] | None = None) -> dict[str, Any]:
    """Return the presets side by side.

    `costs` has the language model costs by preset, for a reader who may see them.
    """
    done = {attempt.preset.name: attempt.outcome for attempt in attempts if attempt.outcome}
    # Hits that the deadline left without facts are not shown.
    hits = {name: [hit for hit in outcome.hits if hit.facts is not None] for name, outcome in done.items()}
    rankings = [[hit.chunk_id for hit in ranking] for ranking in hits.values()]
    places = places_of(rankings)
    names = {
        hit.chunk_id: chunk_name(hit.chunk.title, hit.chunk.heading_path)
        for ranking in hits.values()
        for hit in ranking
    }
    found = _each_found(done, hits, places, costs=costs)
    verdicts = [it["answerability"] for it in found.values() if it["answerability"]]
    in_all = sum(None not in ranks for ranks in places.values())
    return {
        "columns": tuple(
            {
                "preset": it.preset.name,
                "description": it.preset.description,
                "found": found.get(it.preset.name),
                "failure": failure_of(it.error) if it.error else None,
            }
            for it in attempts
        ),
        "names": tuple(done),  # The presets whose search succeeded.
        "shows_costs": bool(found) and costs is not None,
        "is_uncalibrated": not all(verdict["is_calibrated"] for verdict in verdicts),
        "has_overlaps": bool(places) and len(done) > 1,
        "announcement": _announcement(len(done), len(places), in_all, failed=len(attempts) - len(done)),
        "groups": group_times([attempt.outcome for attempt in attempts]),
        "overlaps": _overlaps(tuple(done), rankings, names),
        "chart": preset_flow(places, names, [wording.preset_title(name) for name in done]),
        "depth": DEPTH,
        "chunks": len(places),
        "in_all": in_all,
    }


def _announcement(presets: int, chunks: int, in_all: int, *, failed: int) -> str:
    text = f"{wording.counted(presets, 'preset')} found {wording.counted(chunks, 'chunk')}"
    return f"{text}, {in_all} of them in every preset.{f' {failed} failed.' if failed else ''}"


def _each_found(
    done: Mapping[str, SearchOutcome],
    hits: Mapping[str, Sequence[Hit]],
    places: Mapping[ChunkId, tuple[int | None, ...]],
    *,
    costs: Mapping[str, Decimal] | None,
) -> dict[str, dict[str, Any]]:
    full_seconds = max((outcome.seconds for outcome in done.values()), default=0.0)
    # Each chunk's card is made once: choosing a snippet is slow.
    faces: dict[ChunkId, Card] = {}
    found: dict[str, dict[str, Any]] = {}
    for name, outcome in done.items():
        shared: list[_SharedHit] = []
        for hit in hits[name]:
            if hit.chunk_id not in faces:
                faces[hit.chunk_id] = face(hit, outcome.state.scope)
            shared.append(_shared(hit, faces[hit.chunk_id], name, dict(zip(done, places[hit.chunk_id], strict=True))))
        cost = None if costs is None else costs.get(name, Decimal(0))
        found[name] = _found(outcome, tuple(shared), full_seconds, cost)
    return found


def _shared(hit: Hit, shown: Card, preset: str, ranks: Mapping[str, int | None]) -> _SharedHit:
    card = replace(shown, rank=ranks[preset] or 0, score=f"{hit.score:.3f}")
    elsewhere = tuple((name, rank) for name, rank in ranks.items() if name != preset)
    return _SharedHit(card, sum(rank is not None for rank in ranks.values()), elsewhere)


def _found(
    outcome: SearchOutcome, hits: tuple[_SharedHit, ...], full_seconds: float, cost: Decimal | None
) -> dict[str, Any]:
    found = badges(outcome.trace)
    return {
        "trace": str(outcome.id),
        "version": version_label(outcome.version_number),
        "hits": hits,
        "badges": found,
        "fallbacks": tuple(badge for badge in found if badge.tone == "bad"),
        "answerability": answerability_panel(outcome.state.answerability, outcome.config.answerability),
        "skipped": outcome.skipped,
        "milliseconds": milliseconds(outcome.seconds),
        "deadline_ms": outcome.config.deadline_ms,
        "had_vector": had_vector(outcome.trace),
        "bar": time_bar(outcome, full_seconds=full_seconds),
        "models": model_uses(outcome),
        "cost": cost,
        "context": context_panel(outcome, {}),
    }


def _overlaps(
    presets: Sequence[str], rankings: Sequence[Sequence[ChunkId]], names: Mapping[ChunkId, str]
) -> tuple[dict[str, Any], ...]:
    return tuple(
        {
            "preset": preset,
            "cells": tuple(None if other is ranking else overlap_at(DEPTH, ranking, other) for other in rankings),
            "alone": tuple((chunk_id, names[chunk_id]) for chunk_id in lone),
        }
        for preset, ranking, lone in zip(presets, rankings, alone(rankings, DEPTH), strict=True)
    )


@dataclass(frozen=True, slots=True)
class ModelUse:
    """The usage of a language model by a search."""

    model: str
    calls: int
    known: int  #: Prompts whose grades were cached.
    prompt_tokens: int
    completion_tokens: int
    is_estimated: bool


#: A group of stages, its label, and its milliseconds in each search; None for a failed one.
GroupTime = tuple[str, str, tuple[str | None, ...]]


def seconds_by_group(spans: Sequence[Span]) -> dict[str, float]:
    """Return the seconds of each group of stages; an unknown stage counts as ranking.

    A stage inside another counts as part of it, so that the groups sum to the search time.
    """
    seconds = dict.fromkeys(GROUPS, 0.0)
    for span in spans:
        if not span.parent:
            about = wording.about(span.stage)
            seconds[about.group if about else StageGroup.RANK] += span.seconds
    return seconds


def time_bar(outcome: SearchOutcome, *, full_seconds: float) -> tuple[BarPart, ...]:
    """Return a search's time by group as a bar, on a scale of `full_seconds`."""
    parts = {f"group-{group}": seconds for group, seconds in seconds_by_group(outcome.trace).items()}
    return stacked(parts, full=full_seconds)


def group_times(outcomes: Sequence[SearchOutcome | None]) -> tuple[GroupTime, ...]:
    """Return the time of each group in each search."""
    seconds = [seconds_by_group(outcome.trace) if outcome else None for outcome in outcomes]
    return tuple(
        (group, label, tuple(milliseconds(it[group]) if it else None for it in seconds))
        for group, label in GROUPS.items()
    )


def model_uses(outcome: SearchOutcome) -> tuple[ModelUse, ...]:
    """Return the language model usage of a search; empty if none graded."""
    events: Iterator[Mapping[str, Any]] = (event for span in outcome.trace for event in span.events)
    names = [field.name for field in fields(ModelUse)]
    return tuple(
        ModelUse(**{name: event[name] for name in names}) for event in events if event.get("event") == RELEVANCE_SPENT
    )


def model_words(uses: Sequence[ModelUse]) -> str:
    """Return the usage: "m: 2 calls, 1,204 prompt tokens, 96 completion tokens"; "none" for none."""
    return "; ".join(_use_words(use) for use in uses) or "none"


def _use_words(use: ModelUse) -> str:
    if not use.calls:
        return f"{use.model}: no calls, cached grades used"
    about = "about " if use.is_estimated else ""
    tokens = f"{about}{use.prompt_tokens:,} prompt tokens, {use.completion_tokens:,} completion tokens"
    return f"{use.model}: {wording.counted(use.calls, 'call')}, {tokens}"


def cost_words(cost: Decimal) -> str:
    """Return a cost in the installation's currency: "0.0042"; "0" for nothing."""
    return f"{cost:,.4f}" if cost else "0"
