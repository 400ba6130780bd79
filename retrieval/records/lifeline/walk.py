"""A document's way through a finished search, step by step. Pure: what the store knows is handed in."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self
from uuid import UUID

from retrieval.engine.state import Drop, DropReason, SearchState, Span
from retrieval.engine.types import ChunkId, Ranking
from retrieval.index.types import DocumentProbe
from retrieval.presets.preset import PresetConfig
from retrieval.presets.stage_catalog import ABOUT
from retrieval.records.lifeline.legs import Look, leg_step
from retrieval.records.lifeline.losses import Loss, explained
from retrieval.records.lifeline.types import PACKED, Evidence, Step, StepState, Way


@dataclass(frozen=True, slots=True)
class Course:
    """The spans that a hit goes through, in order."""

    legs: tuple[Span, ...]
    stages: tuple[Span, ...]  #: What follows the legs, as far as to the packing; each leaves a ranking.
    packing: Span | None  #: None when the time was up before it.

    @classmethod
    def of(cls, state: SearchState) -> Self:
        """Return the course of a finished search: from its legs on, else from what first gave hits, else the last span.

        The last span alone is where the deadline passed before anything was found.
        """
        # The spans that did the work, legs in the place of what ran them.
        parents = {span.parent for span in state.trace}
        spans = [span for span in state.trace if span.stage not in parents]
        legs = tuple(span for span in spans if span.stage in state.rankings)
        packing = next((span for span in spans if "passages" in span.gives), None)
        givers = (place for place, span in enumerate(spans) if "hits" in span.gives)
        begin = spans.index(legs[-1]) + 1 if legs else next(givers, max(len(spans) - 1, 0))
        end = spans.index(packing) if packing else len(spans)
        return cls(legs, tuple(spans[begin:end]), packing)


@dataclass(frozen=True, slots=True)
class Fate:
    """How far one chunk came."""

    chunk_id: ChunkId
    came_in: int  #: The first stage (by its place in the course, from 0) that had it; the legs' hits come in at 0.
    passed: int  #: Stages that are behind it; as many as there are when it came as far as the packing.
    rank: int  #: Its place, from 1, in the last ranking that had it; 0 where that was a leg's.
    drop: Drop | None  #: What removed it; None when it was packed, or left without a recorded reason.
    citation: int | None = None

    @property
    def distance(self) -> tuple[int, bool, bool, int, int]:
        """Sort key: the further it came the greater, then the better its rank was."""
        is_wanted = self.drop is None or self.drop.reason is not DropReason.TOP_K
        return (self.passed, self.citation is not None, is_wanted, -self.rank, -self.chunk_id.ordinal)


def fates(document_id: UUID, state: SearchState, course: Course) -> tuple[Fate, ...]:
    """Return the fate of every chunk of a document that a leg or a stage had, the one that came furthest first."""
    seen = {
        hit.chunk_id
        for ranking in (*state.rankings.values(), *(span.left for span in course.stages))
        for hit in ranking
        if hit.chunk_id.document_id == document_id
    }
    ranks = [{hit.chunk_id: rank for rank, hit in enumerate(span.left, start=1)} for span in course.stages]
    in_legs = {hit.chunk_id for ranking in state.rankings.values() for hit in ranking}
    found = [_fate(chunk_id, state, course, ranks, is_from_leg=chunk_id in in_legs) for chunk_id in seen]
    return tuple(sorted(found, key=lambda fate: fate.distance, reverse=True))


def drop_in(span: Span, chunk_id: ChunkId) -> Drop | None:
    """Return a span's reason for removing a chunk; None when it has none."""
    return next((drop for drop in span.drops if drop.chunk_id == chunk_id), None)


def _fate(
    chunk_id: ChunkId, state: SearchState, course: Course, ranks: Sequence[Mapping[ChunkId, int]], *, is_from_leg: bool
) -> Fate:
    came_in = 0 if is_from_leg else next(place for place, left in enumerate(ranks) if chunk_id in left)
    rank = 0
    for place in range(came_in, len(ranks)):
        drop = drop_in(course.stages[place], chunk_id)
        if drop or chunk_id not in ranks[place]:
            return Fate(chunk_id, came_in, place, rank, drop)
        rank = ranks[place][chunk_id]
    drop = drop_in(course.packing, chunk_id) if course.packing else None
    numbers = (passage.number for passage in state.passages if passage.hit.chunk_id == chunk_id)
    return Fate(chunk_id, came_in, len(course.stages), rank, drop, next(numbers, None))


@dataclass(frozen=True, slots=True)
class Journey:
    """What a finished search did with one document."""

    state: SearchState
    config: PresetConfig
    course: Course
    fates: tuple[Fate, ...]  #: Of the chunks that a leg or a stage had, the one that came furthest first.

    @classmethod
    def of(cls, document_id: UUID, state: SearchState, config: PresetConfig) -> Self:
        """Return what a finished search did with a document."""
        course = Course.of(state)
        return cls(state, config, course, fates(document_id, state, course))

    @property
    def followed(self) -> ChunkId | None:
        """The chunk that came furthest; None where no leg found one."""
        return self.fates[0].chunk_id if self.fates else None

    def subjects(self, probe: DocumentProbe) -> dict[str, ChunkId | None]:
        """Return the chunk that each leg's step describes: the one that passed the most steps, else the leg's best."""
        best = {"dense": probe.nearest, "fulltext": probe.wordiest, "bm25": probe.wordiest}
        return {span.stage: self.followed or best.get(span.stage) for span in self.course.legs}


def steps(journey: Journey, evidence: Evidence) -> Iterator[Step]:
    """Yield the steps from the legs to the packing."""
    course, found = journey.course, journey.fates
    subjects = journey.subjects(evidence.probe)
    for span in course.legs:
        look = Look(span, subjects[span.stage], journey.state, journey.config, evidence)
        yield leg_step(look, found_elsewhere=bool(found))
    if not found and course.legs:
        yield from not_reached([*(span.stage for span in course.stages), PACKED])
        return
    yield from _stages(journey, course, found[0] if found else None)


def not_reached(names: Sequence[str]) -> Iterator[Step]:
    """Yield steps that a document did not come to."""
    return (Step(name, StepState.NOT_REACHED) for name in names)


def step_names(state: SearchState) -> list[str]:
    """Return the names of the steps from the legs to the packing, in order."""
    course = Course.of(state)
    return [*(span.stage for span in (*course.legs, *course.stages)), PACKED]


def ways(journey: Journey, *, chunks: int) -> tuple[Way, ...]:
    """Return how many of a document's chunks ended at each step, those that came furthest first."""
    course = journey.course
    ended = Counter((_ended_at(fate, course), fate.citation is not None) for fate in journey.fates)
    unfound = chunks - ended.total()
    found = [Way(name, count, is_packed) for (name, is_packed), count in ended.items()]
    return (*found, *([Way("", unfound)] if unfound > 0 else []))


def _ended_at(fate: Fate, course: Course) -> str:
    return course.stages[fate.passed].stage if fate.passed < len(course.stages) else PACKED


def _stages(journey: Journey, course: Course, fate: Fate | None) -> Iterator[Step]:
    before: Ranking = ()
    passed = fate.passed if fate else 0
    for place, span in enumerate(course.stages):
        if place > passed:
            yield Step(span.stage, StepState.NOT_REACHED)
        elif fate is None or place == passed:
            yield _lost(journey, span, before, fate)
        elif place < fate.came_in:
            yield Step(span.stage, StepState.MISSED, "not in the ranking yet")
        else:
            yield _passed(journey, span, fate, before)
        before = span.left
    yield _packing(journey, course, fate, before)


def _passed(journey: Journey, span: Span, fate: Fate, before: Ranking) -> Step:
    """Return the step of a stage that let the chunk through; one that did nothing says why."""
    fact = ""
    ranked = enumerate(span.left, start=1)
    if found := next(((rank, hit) for rank, hit in ranked if hit.chunk_id == fate.chunk_id), None):
        rank, hit = found
        about = ABOUT.get(span.stage)
        # "rank 11 of 30, logit 4.210"; the rank alone where the stage decides by no number.
        numbers = about.fact(hit, journey.config) if about and about.fact else ""
        fact = ", ".join(filter(None, (f"rank {rank:,} of {len(span.left):,}", numbers)))
    is_degraded = any(note.degraded for note in span.notes)
    told = [note.text.rstrip(".") for note in span.notes if note.degraded or span.left is before]
    return Step(span.stage, StepState.DEGRADED if is_degraded else StepState.PASSED, ". ".join((fact, *told)))


def _lost(journey: Journey, span: Span, before: Ranking, fate: Fate | None) -> Step:
    course = journey.course
    if fate is None and (course.legs or any("hits" in span.gives for span in course.stages)):
        return Step(span.stage, StepState.DROPPED, "not in this stage's results")
    if fate is None and journey.state.is_finished:
        return Step(span.stage, StepState.DROPPED, "nothing was searched: the query needs no search")
    if fate is None:
        return Step(span.stage, StepState.DROPPED, "the deadline passed before anything was found", _more_time(journey))
    if fate.drop is None:
        return Step(span.stage, StepState.DROPPED, "removed here, no reason recorded")
    fact, remedy = explained(Loss(fate.drop, span, before, journey.state, journey.config))
    return Step(span.stage, StepState.DROPPED, fact, remedy)


def _packing(journey: Journey, course: Course, fate: Fate | None, before: Ranking) -> Step:
    if fate is None or fate.passed < len(course.stages):
        return Step(PACKED, StepState.NOT_REACHED)
    if course.packing is None:
        late = "the deadline passed before passages were packed"
        return Step(PACKED, StepState.DROPPED, late, _more_time(journey))
    if drop := drop_in(course.packing, fate.chunk_id):
        loss = Loss(drop, course.packing, before, journey.state, journey.config)
        return Step(PACKED, StepState.DROPPED, *explained(loss))
    if fate.citation is None:
        return Step(PACKED, StepState.DROPPED, "removed here, no reason recorded")
    tokens = {passage.number: passage.token_count for passage in journey.state.passages}[fate.citation]
    return Step(PACKED, StepState.PASSED, f"packed as [{fate.citation}], rank {fate.rank:,}, {tokens:,} tokens")


def _more_time(journey: Journey) -> str:
    return f"A deadline_ms above {journey.config.deadline_ms:,} would have allowed it to continue."
