"""The way that hits take through a finished search, read from its spans whatever the stages are."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self
from uuid import UUID

from retrieval.engine.state import Drop, DropReason, SearchState, Span
from retrieval.engine.types import ChunkId, Hit


@dataclass(frozen=True, slots=True)
class Course:
    """The spans that a hit goes through, in order."""

    legs: tuple[Span, ...]
    #: What follows the legs, as far as to the packing; each leaves a ranking.
    stages: tuple[Span, ...]
    #: None when the time was up before it.
    packing: Span | None

    @classmethod
    def of(cls, state: SearchState) -> Self:
        """Return the course of a finished search: from its legs on, else from what first gave hits, else the last span.

        The last span alone is where the deadline passed before anything was found.
        """
        spans = list(_leaves(state))
        legs = tuple(span for span in spans if span.stage in state.rankings)
        packing = next((span for span in spans if "passages" in span.gives), None)
        givers = (place for place, span in enumerate(spans) if "hits" in span.gives)
        begin = spans.index(legs[-1]) + 1 if legs else next(givers, max(len(spans) - 1, 0))
        end = spans.index(packing) if packing else len(spans)
        return cls(legs, tuple(spans[begin:end]), packing)

    @property
    def gives_hits(self) -> bool:
        """Whether anything was searched before the time was up."""
        return bool(self.legs) or any("hits" in span.gives for span in self.stages)


@dataclass(frozen=True, slots=True)
class Fate:
    """How far one chunk came."""

    chunk_id: ChunkId
    #: The first stage (by its place in the course, from 0) that had it; the legs' hits come in at 0.
    came_in: int
    #: Stages that are behind it; as many as there are when it came as far as the packing.
    passed: int
    #: Its place, from 1, in the last ranking that had it; 0 where that was a leg's.
    rank: int
    #: What removed it; None when it was packed, or left without a recorded reason.
    drop: Drop | None
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


def place_in(span: Span, chunk_id: ChunkId) -> tuple[int, Hit] | None:
    """Return a chunk's place, from 1, among what a span left, and its hit; None when it is not there."""
    places = ((rank, hit) for rank, hit in enumerate(span.left, start=1) if hit.chunk_id == chunk_id)
    return next(places, None)


def drop_in(span: Span, chunk_id: ChunkId) -> Drop | None:
    """Return a span's reason for removing a chunk; None when it has none."""
    return next((drop for drop in span.drops if drop.chunk_id == chunk_id), None)


def _leaves(state: SearchState) -> Iterator[Span]:
    """Yield the spans that did the work, legs in the place of what ran them."""
    parents = {span.parent for span in state.trace}
    return (span for span in state.trace if span.stage not in parents)


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
    return _packed(Fate(chunk_id, came_in, len(course.stages), rank, None), state, course)


def _packed(fate: Fate, state: SearchState, course: Course) -> Fate:
    drop = drop_in(course.packing, fate.chunk_id) if course.packing else None
    numbers = (passage.number for passage in state.passages if passage.hit.chunk_id == fate.chunk_id)
    return Fate(fate.chunk_id, fate.came_in, fate.passed, fate.rank, drop, next(numbers, None))
