"""One query to every preset, and the results side by side: hits, overlap, time, cost and packed context."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final

from corecube.access import Principal
from corecube.errors import CoreCubeError
from explorer import wording
from explorer.charts.chart import Chart
from explorer.charts.rank_flow import preset_flow
from explorer.components.answerability import AnswerabilityPanel, answerability_panel
from explorer.components.badges import Badge, badges
from explorer.components.bars import BarPart
from explorer.components.context import ContextPanel, context_panel
from explorer.components.drops import chunk_name
from explorer.components.lanes import Card, face
from explorer.components.preset_numbers import version_label
from explorer.components.search_page import failure_of
from explorer.pages.side_by_side.preset_cost import GroupTime, ModelUse, group_times, model_uses, time_bar
from explorer.wording import milliseconds
from retrieval.engine.types import ChunkId, Hit
from retrieval.presets.catalog import PRESETS
from retrieval.presets.preset import Preset
from retrieval.ranking.comparison import Overlap, alone, overlap_at, places_of
from retrieval.search.outcome import SearchOutcome
from retrieval.search.request import SearchRequest
from retrieval.search.service import search

logger = logging.getLogger(__name__)

_SERVER_ERROR: Final = 500
DEPTH: Final = 10


@dataclass(frozen=True, slots=True)
class Attempt:
    """The outcome of one preset, or its error."""

    preset: Preset
    outcome: SearchOutcome | None = None
    error: CoreCubeError | None = None


def usable_presets(principal: Principal) -> tuple[Preset, ...]:
    """Return the presets that a principal may search with."""
    return tuple(preset for preset in PRESETS.values() if principal.may_use(preset.name))


def ask_each(asking: SearchRequest, principal: Principal) -> tuple[Attempt, ...]:
    """Search with each preset, one after another so that they do not slow each other down."""
    return tuple(_attempt(it, replace(asking, preset=it.name), principal) for it in usable_presets(principal))


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The results of a preset."""

    trace: str
    version: str
    hits: tuple[_SharedHit, ...]
    badges: tuple[Badge, ...]
    answerability: AnswerabilityPanel | None
    skipped: str  #: Why nothing was searched; empty otherwise.
    milliseconds: str
    deadline_ms: int
    had_vector: bool  #: The query vector was cached, for example by the preset that ran first.
    bar: tuple[BarPart, ...]
    models: tuple[ModelUse, ...]
    cost: Decimal | None  #: The language model cost; None if the reader may not see it.
    context: ContextPanel

    @property
    def fallbacks(self) -> tuple[Badge, ...]:
        """The badges of fallbacks and of stages that were cut short."""
        return tuple(badge for badge in self.badges if badge.degraded)


@dataclass(frozen=True, slots=True)
class Column:
    """One preset."""

    preset: str
    description: str
    found: Found | None
    failure: Mapping[str, str] | None  #: Why it has no results: title and message.


@dataclass(frozen=True, slots=True)
class _OverlapRow:
    preset: str
    cells: tuple[Overlap | None, ...]  #: In preset order; None for itself.
    alone: tuple[tuple[ChunkId, str], ...]  #: Chunks that only this preset has in its top hits, with names.


@dataclass(frozen=True, slots=True, kw_only=True)
class SideBySidePanel:
    """All presets."""

    columns: tuple[Column, ...]
    names: tuple[str, ...]  #: The presets whose search succeeded, in order.
    groups: tuple[GroupTime, ...]
    overlaps: tuple[_OverlapRow, ...]
    chart: Chart | None
    depth: int
    chunks: int  #: Distinct chunks, and those that every preset returned.
    in_all: int

    @property
    def shows_costs(self) -> bool:
        """Whether a column shows its language model cost."""
        return any(column.found and column.found.cost is not None for column in self.columns)

    @property
    def is_uncalibrated(self) -> bool:
        """Whether a verdict comes from a confidence model that is not calibrated."""
        verdicts = (column.found.answerability for column in self.columns if column.found)
        return any(verdict is not None and not verdict.is_calibrated for verdict in verdicts)

    @property
    def has_overlaps(self) -> bool:
        """Whether two presets have hits to compare."""
        return bool(self.chunks) and len(self.names) > 1

    @property
    def announcement(self) -> str:
        """What a screen reader announces when the results arrive."""
        failed = len(self.columns) - len(self.names)
        text = f"{wording.counted(len(self.names), 'preset')} found {wording.counted(self.chunks, 'chunk')}"
        return f"{text}, {self.in_all} of them in every preset.{f' {failed} failed.' if failed else ''}"


def side_by_side_panel(attempts: Sequence[Attempt], *, costs: Mapping[str, Decimal] | None = None) -> SideBySidePanel:
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
    return SideBySidePanel(
        columns=tuple(
            Column(
                it.preset.name,
                it.preset.description,
                found.get(it.preset.name),
                failure_of(it.error) if it.error else None,
            )
            for it in attempts
        ),
        names=tuple(done),
        groups=group_times([attempt.outcome for attempt in attempts]),
        overlaps=_overlaps(tuple(done), rankings, names),
        chart=preset_flow(places, names, tuple(done)),
        depth=DEPTH,
        chunks=len(places),
        in_all=sum(None not in ranks for ranks in places.values()),
    )


def _each_found(
    done: Mapping[str, SearchOutcome],
    hits: Mapping[str, Sequence[Hit]],
    places: Mapping[ChunkId, tuple[int | None, ...]],
    *,
    costs: Mapping[str, Decimal] | None,
) -> dict[str, Found]:
    full_seconds = max((outcome.seconds for outcome in done.values()), default=0.0)
    # Each chunk's card is made once: choosing a snippet is slow.
    faces: dict[ChunkId, Card] = {}
    found: dict[str, Found] = {}
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


def _found(outcome: SearchOutcome, hits: tuple[_SharedHit, ...], full_seconds: float, cost: Decimal | None) -> Found:
    return Found(
        trace=str(outcome.id),
        version=version_label(outcome.version_number),
        hits=hits,
        badges=badges(outcome.trace),
        answerability=answerability_panel(outcome),
        skipped=outcome.skipped,
        milliseconds=milliseconds(outcome.seconds),
        deadline_ms=outcome.config.deadline_ms,
        had_vector=any(note.code == "embed_cached" for span in outcome.trace for note in span.notes),
        bar=time_bar(outcome, full_seconds=full_seconds),
        models=model_uses(outcome),
        cost=cost,
        context=context_panel(outcome, {}),
    )


def _overlaps(
    presets: Sequence[str], rankings: Sequence[Sequence[ChunkId]], names: Mapping[ChunkId, str]
) -> tuple[_OverlapRow, ...]:
    return tuple(
        _OverlapRow(
            preset,
            tuple(None if other is ranking else overlap_at(DEPTH, ranking, other) for other in rankings),
            tuple((chunk_id, names[chunk_id]) for chunk_id in lone),
        )
        for preset, ranking, lone in zip(presets, rankings, alone(rankings, DEPTH), strict=True)
    )
