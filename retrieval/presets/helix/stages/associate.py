"""Associating the fused hits with what they are linked to, as HippoRAG does."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar
from uuid import UUID

from corecube.errors import CoreCubeError
from retrieval.engine.about import About, BaseStage, StageGroup
from retrieval.engine.state import Note, SearchState
from retrieval.engine.tunables import Tunables, costly, tunable
from retrieval.engine.types import ChunkId, Hit, Lift, Ranking, ScoreType, Vector
from retrieval.errors import SearchTimeoutError
from retrieval.graph.links import Edge, name_links, stated_links, unnamed_shared_links
from retrieval.index import graph
from retrieval.index.store import VectorIndex
from retrieval.presets.helix.walk import Step, best_steps, inverse_distances, personalized_pagerank
from retrieval.stages.complete import PrefetchPool


@dataclass(frozen=True, slots=True, kw_only=True)
class AssociateConfig(Tunables, label="Association"):
    """How far links are followed from the fused hits."""

    seeds: int = costly(100, low=1, high=1000, unit="hits", help="Number of top fused hits that are the seeds.")
    hops: int = costly(2, low=1, high=2, unit="hops", help="Number of links followed one after another.")
    neighbours: int = costly(
        8, low=1, high=100, unit="links", help="Maximum links of one document that are followed, surest first."
    )
    damping: float = tunable(
        0.5, low=0.0, high=0.99, help="Share of PageRank's mass that follows links instead of returning to the seeds."
    )
    max_rows: int = costly(
        5000,
        low=10,
        high=100_000,
        unit="rows",
        help="Maximum number of rows that one hop reads; beyond it documents are found breadth-first.",
    )
    pool: int = costly(
        160, low=1, high=2000, unit="hits", help="Maximum number of hits in the pool with those that links add."
    )


@dataclass(frozen=True, slots=True)
class Links:
    """The links around the seeds, within the hops."""

    edges: Sequence[Edge]
    rows: int
    is_cut: bool  #: Whether a hop reached the row limit.


@dataclass(frozen=True, slots=True)
class Associate(BaseStage, name="associate", needs={"hits", "vector", "scope"}, gives={"hits"}, optional=True):
    """Score the fused hits by Personalized PageRank from all of them, and add the linked documents with the most mass.

    Links count in both directions, by how surely they mean their target. Where a hop reached the row limit, the score
    is 1 / distance from the nearest seed instead. Without a vector, on a timeout or an error the pool stays unchanged.
    Gutiérrez et al., "HippoRAG", 2024.
    """

    config: AssociateConfig
    index: VectorIndex
    ahead: PrefetchPool | None = None  #: Reads the pool while links are followed; None leaves that to the next stage.

    about: ClassVar[About] = About(
        "linked",
        "Follows links from all fused hits by Personalized PageRank and adds the documents that they lead to.",
        group=StageGroup.MERGE,
        section="associate",
        window="associate.pool",
        notes={"associate_cut": "links followed breadth-first"},
    )

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state with the signal "graph" of each hit, and the hits that links add behind the fused ones."""
        if not state.hits or state.vector is None:
            return state
        vector, state = state.vector, self.ahead.begun(state) if self.ahead else state
        try:
            return self._associated(state, vector)
        except SearchTimeoutError:
            note = Note("associate_timeout", "Following links timed out.", degraded=True)
        except CoreCubeError:
            note = Note("associate_failed", "Links could not be followed.", degraded=True)
        return state.noted(note)

    def _associated(self, state: SearchState, vector: Vector) -> SearchState:
        seeds = seeds_in(state.hits[: self.config.seeds])
        links = self._links([hit.chunk_id for hit in state.hits[: self.config.seeds]], seeds, state)
        steps = both_ways(links.edges, limit=self.config.neighbours)
        if links.is_cut:
            scores = inverse_distances(seeds, steps, hops=self.config.hops)
        else:
            scores = personalized_pagerank(seeds, steps, damping=self.config.damping)
        pooled = {hit.chunk_id.document_id for hit in state.hits}
        linked = sorted((it for it in scores if it not in pooled), key=lambda it: (-scores[it], it.int))
        taken = linked[: self._room(len(state.hits))]
        added = self._entries(taken, links.edges, vector, state) if taken else []
        lifts = lifts_of(links.edges, scores)
        hits = tuple(
            replace(
                hit,
                signals={**hit.signals, "graph": scores.get(hit.chunk_id.document_id, 0.0)},
                lifts=lifts.get(hit.chunk_id.document_id, ()),
            )
            for hit in (*state.hits, *added)
        )
        text = (
            f"{len(seeds)} seeds, {len(links.edges)} links, {links.rows} rows read; {len(linked)} linked documents,"
            f" {len(added)} of them added."
        )
        notes = [Note("associated", text)]
        if links.is_cut:
            notes.append(Note("associate_cut", "The row limit was reached, so links were followed breadth-first."))
        return replace(state, hits=hits).noted(*notes)

    def _links(self, chunks: Sequence[ChunkId], seeds: Collection[UUID], state: SearchState) -> Links:
        """Return the links of the seeds' chunks, then those of the first chunks of the documents that they lead to."""
        links = self._hop((), chunks, state)
        reached = sorted(links.edges, key=lambda it: (-it.weight, it.target.int))
        on = [it for it in dict.fromkeys(edge.target for edge in reached) if it not in seeds][: self._room(len(chunks))]
        if self.config.hops == 1 or links.is_cut or not on:
            return links
        further = self._hop(on, (), state)
        return Links((*links.edges, *further.edges), links.rows + further.rows, further.is_cut)

    def _room(self, hits: int) -> int:
        """Return how many hits links may add to so many."""
        return max(0, self.config.pool - hits)

    def _hop(self, documents: Sequence[UUID], chunks: Sequence[ChunkId], state: SearchState) -> Links:
        found = graph.subgraph(
            documents,
            chunks,
            scope=state.scope,
            with_shared_names=True,
            limit=self.config.max_rows,
            timeout_seconds=state.deadline.leg_seconds,
        )
        edges = (
            *name_links(found.seeds, found.names),
            # Their phrases would take longer to look up than everything else here.
            *unnamed_shared_links(found.seeds, found.holders),
            *stated_links(found.stated, {seed.chunk: seed.text for seed in found.seeds}),
        )
        return Links(edges, found.size, found.is_cut)

    def _entries(
        self, documents: Sequence[UUID], edges: Sequence[Edge], vector: Vector, state: SearchState
    ) -> list[Hit]:
        """Return the chunk of each document that is nearest to the question, in the documents' order."""
        wanted = set(documents)
        shared = [it.target_chunk for it in edges if it.target_chunk is not None and it.target in wanted]
        found = graph.likeness(
            documents,
            shared,
            relation=vector,
            question=vector,
            index=self.index,
            scope=state.scope,
            timeout_seconds=state.deadline.leg_seconds,
        )
        nearest = {it.chunk.document_id: it for it in sorted(found.chunks, key=lambda it: (it.cosine, it.chunk))}
        entries = [nearest[it] for it in documents if it in nearest]
        return [Hit(it.chunk, 0.0, ScoreType.RRF, signals={"cosine": it.cosine}) for it in entries]


def seeds_in(hits: Ranking) -> dict[UUID, float]:
    """Return the weight of each document as a seed: the sum of its hits' fused scores."""
    seeds: dict[UUID, float] = defaultdict(float)
    for hit in hits:
        seeds[hit.chunk_id.document_id] += hit.score
    return dict(seeds)


def both_ways(edges: Sequence[Edge], *, limit: int) -> list[Step]:
    """Return the surest link of each pair of documents in both directions, at most `limit` from each document."""
    surest: dict[tuple[int, int], Edge] = {}
    for edge in edges:
        source, target = edge.source.document_id.int, edge.target.int
        pair = (source, target) if source < target else (target, source)
        if pair not in surest or surest[pair].weight < edge.weight:
            surest[pair] = edge
    ends = ((it.source.document_id, it.target, it.weight) for it in surest.values())
    steps = (step for one, other, weight in ends for step in (Step(one, other, weight), Step(other, one, weight)))
    return best_steps(steps, limit=limit)


def lifts_of(edges: Sequence[Edge], scores: Mapping[UUID, float]) -> dict[UUID, tuple[Lift, ...]]:
    """Return the links to each document, surest first, with their shares of its score."""
    incoming: dict[UUID, list[Edge]] = defaultdict(list)
    for edge in edges:
        incoming[edge.target].append(edge)
    lifts = {}
    for target, found in incoming.items():
        share = scores.get(target, 0.0) / sum(edge.weight for edge in found)
        ordered = sorted(found, key=lambda it: (-it.weight, it.source.document_id.int, it.source.ordinal))
        lifts[target] = tuple(Lift(it.kind, it.weight * share, it.name, it.source, it.sentence) for it in ordered)
    return lifts
