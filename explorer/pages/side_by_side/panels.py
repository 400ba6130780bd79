"""Every preset's answer to one question: hits beside each other, what they share, what each took and packed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final

from corecube.errors import CoreCubeError
from explorer import wording
from explorer.charts.chart import Chart
from explorer.charts.rank_flow import preset_flow
from explorer.components.answerability import AnswerabilityPanel, answerability_panel
from explorer.components.badges import Badge, badges
from explorer.components.bars import BarPart
from explorer.components.context import ContextPanel, context_panel
from explorer.components.drops import chunk_name
from explorer.components.lane_cards import Card
from explorer.components.lanes import Facts, face
from explorer.components.preset_numbers import version_label
from explorer.components.snippets import StemIn
from explorer.pages.side_by_side.preset_cost import GroupTime, ModelUse, group_times, model_uses, time_bar
from explorer.pages.side_by_side.request import Attempt
from explorer.wording.durations import milliseconds
from retrieval.engine.types import ChunkId, Hit
from retrieval.ranking.comparison import Overlap, alone, overlap_at, places_of
from retrieval.search.outcome import SearchOutcome

#: The depth that overlaps are counted to.
DEPTH: Final = 10


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Where another preset has a hit."""

    preset: str
    #: None where it did not return it.
    rank: int | None


@dataclass(frozen=True, slots=True)
class SharedHit:
    """A hit of one preset, and how it stands with the others."""

    card: Card
    #: How many presets returned it.
    found: int
    elsewhere: tuple[Elsewhere, ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a preset has nothing to show."""

    title: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a preset found and did."""

    #: The stored trace.
    trace: str
    version: str
    hits: tuple[SharedHit, ...]
    badges: tuple[Badge, ...]
    answerability: AnswerabilityPanel | None
    #: Why nothing was searched; empty where something was.
    skipped: str
    milliseconds: str
    deadline_ms: int
    #: The query's vector was kept from before, as from the preset that searched first, which saved the time to make it.
    had_vector: bool
    bar: tuple[BarPart, ...]
    models: tuple[ModelUse, ...]
    #: What the models' answers cost; None where it is not to be told.
    cost: Decimal | None
    context: ContextPanel

    @property
    def fallbacks(self) -> tuple[Badge, ...]:
        """What fell back or was cut short."""
        return tuple(badge for badge in self.badges if badge.degraded)


@dataclass(frozen=True, slots=True)
class Column:
    """One preset."""

    preset: str
    description: str
    found: Found | None
    failure: Failure | None


@dataclass(frozen=True, slots=True)
class OverlapRow:
    """What a preset's first hits share with those of the others."""

    preset: str
    #: In the presets' order; None with itself.
    cells: tuple[Overlap | None, ...]
    #: What no other preset has among its first hits: name and chunk.
    alone: tuple[tuple[ChunkId, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SideBySidePanel:
    """All presets."""

    columns: tuple[Column, ...]
    #: The presets that found anything out, in their order.
    names: tuple[str, ...]
    groups: tuple[GroupTime, ...]
    overlaps: tuple[OverlapRow, ...]
    chart: Chart | None
    depth: int
    #: Different chunks, and those that every preset returned.
    chunks: int
    in_all: int

    @property
    def shows_costs(self) -> bool:
        """Whether a column tells what its language model cost."""
        return any(column.found and column.found.cost is not None for column in self.columns)

    @property
    def announcement(self) -> str:
        """What a screen reader is told when the presets' hits arrive."""
        failed = len(self.columns) - len(self.names)
        said = f"{wording.counted(len(self.names), 'preset')} found {wording.counted(self.chunks, 'chunk')}"
        return f"{said}, {self.in_all} of them in all.{f' {failed} failed.' if failed else ''}"


def side_by_side_panel(
    attempts: Sequence[Attempt], *, stem_in: StemIn, costs: Mapping[str, Decimal] | None = None
) -> SideBySidePanel:
    """Return the presets beside each other.

    `costs` has what each preset's language models cost, by the preset's name, for a reader who may know.
    """
    done = {attempt.preset.name: attempt.outcome for attempt in attempts if attempt.outcome}
    hits = {name: _read(outcome) for name, outcome in done.items()}
    rankings = [[hit.chunk_id for hit in ranking] for ranking in hits.values()]
    places = places_of(rankings)
    names = {hit.chunk_id: _name(hit) for ranking in hits.values() for hit in ranking}
    found = _each_found(done, hits, places, stem_in=stem_in, costs=costs)
    return SideBySidePanel(
        columns=tuple(
            Column(it.preset.name, it.preset.description, found.get(it.preset.name), _failure(it.error))
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
    stem_in: StemIn,
    costs: Mapping[str, Decimal] | None,
) -> dict[str, Found]:
    """Return what each preset found, by its name."""
    whole_seconds = max((outcome.seconds for outcome in done.values()), default=0.0)
    faces = _faces(done, hits, stem_in)
    found: dict[str, Found] = {}
    for name, outcome in done.items():
        ranked = [(hit, dict(zip(done, places[hit.chunk_id], strict=True))) for hit in hits[name]]
        shared = tuple(_shared(hit, faces[hit.chunk_id], name, ranks) for hit, ranks in ranked)
        cost = None if costs is None else costs.get(name, Decimal(0))
        found[name] = _found(outcome, shared, whole_seconds, cost)
    return found


def _read(outcome: SearchOutcome) -> tuple[Hit, ...]:
    """Return the hits wanted; those that the deadline left unread are left out."""
    return tuple(hit for hit in outcome.hits if hit.facts is not None)


def _name(hit: Hit) -> str:
    return chunk_name(hit.chunk.title, hit.chunk.heading_path)


def _faces(
    done: Mapping[str, SearchOutcome], hits: Mapping[str, Sequence[Hit]], stem_in: StemIn
) -> dict[ChunkId, Card]:
    """Return each chunk's card, made once: to choose a snippet takes a while."""
    faces: dict[ChunkId, Card] = {}
    for name, outcome in done.items():
        facts = Facts({}, outcome.state.scope, stem_in, {})
        for hit in hits[name]:
            if hit.chunk_id not in faces:
                faces[hit.chunk_id] = face(hit, facts)
    return faces


def _shared(hit: Hit, shown: Card, preset: str, ranks: Mapping[str, int | None]) -> SharedHit:
    card = replace(shown, rank=ranks[preset] or 0, score=f"{hit.score:.3f}")
    elsewhere = tuple(Elsewhere(name, rank) for name, rank in ranks.items() if name != preset)
    return SharedHit(card, sum(rank is not None for rank in ranks.values()), elsewhere)


def _found(outcome: SearchOutcome, hits: tuple[SharedHit, ...], whole_seconds: float, cost: Decimal | None) -> Found:
    return Found(
        trace=str(outcome.id),
        version=version_label(outcome.version_number),
        hits=hits,
        badges=badges(outcome),
        answerability=answerability_panel(outcome),
        skipped=outcome.skipped,
        milliseconds=milliseconds(outcome.seconds),
        deadline_ms=outcome.config.deadline_ms,
        had_vector=any(note.code == "embed_cached" for span in outcome.trace for note in span.notes),
        bar=time_bar(outcome, whole_seconds=whole_seconds),
        models=model_uses(outcome),
        cost=cost,
        context=context_panel(outcome, {}),
    )


def _failure(error: CoreCubeError | None) -> Failure | None:
    return None if error is None else Failure(error.code.replace("_", " ").capitalize(), str(error))


def _overlaps(
    presets: Sequence[str], rankings: Sequence[Sequence[ChunkId]], names: Mapping[ChunkId, str]
) -> tuple[OverlapRow, ...]:
    return tuple(
        OverlapRow(
            preset,
            tuple(None if other is own else overlap_at(DEPTH, own, other) for other in rankings),
            tuple((chunk_id, names[chunk_id]) for chunk_id in lone),
        )
        for preset, own, lone in zip(presets, rankings, alone(rankings, DEPTH), strict=True)
    )
