"""PageRank and traversal along links from the seeds, and the reserved slots. Pure."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp
from typing import Any, Final
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from retrieval.engine.quick import quick

#: Standard deviations above the corpus mean at which a document almost certainly matches the question.
_RELATION_CENTRE: Final = 2.0
_TOLERANCE: Final = 1e-6  #: Remaining PageRank mass at which the iteration ends.
_MAX_STEPS: Final = 50


@quick
@dataclass(frozen=True, slots=True)
class Step:
    """A link from one document to another, with its evidence for this question, 0 to 1."""

    source: UUID
    target: UUID
    evidence: float


def relation_match(z: float) -> float:
    """Return the weight of a link by its target's similarity to the question, 0.5 to 1.

    z is in standard deviations above the corpus mean. A link is evidence by itself, so it never loses more than half.
    """
    return 0.5 + 0.5 / (1.0 + exp(min(50.0, max(-50.0, _RELATION_CENTRE - z))))


def best_steps(steps: Iterable[Step], *, limit: int) -> list[Step]:
    """Return the steps with the most evidence, at most `limit` per source, best first."""
    taken: dict[int, int] = defaultdict(int)
    kept = []
    for step in sorted(steps, key=lambda it: (-it.evidence, it.source.int, it.target.int)):
        if taken[step.source.int] < limit:
            taken[step.source.int] += 1
            kept.append(step)
    return kept


def pagerank(seeds: Mapping[UUID, float], steps: Sequence[Step], *, damping: float, limit: float) -> dict[UUID, float]:
    """Return what Personalized PageRank lifts each document by, 0 to `limit`.

    p = (1 - d) v + d A'p with the seeds' weights as v and the links' evidence as A. A row that sums to more than 1 is
    scaled down to 1; mass that a row lacks to 1 is lost, so that a single weak link stays weak. The lift is the mass
    that came along links, in units of one certain link from a seed of weight 1. Page et al.,
    1999; Gutiérrez et al., HippoRAG, 2024.
    """
    if not seeds or not steps:
        return {}
    nodes = _nodes(seeds, steps)
    place = {node.int: number for number, node in enumerate(nodes)}
    restart = np.zeros(len(nodes))
    for node, weight in seeds.items():
        restart[place[node.int]] = weight
    sources = np.array([place[step.source.int] for step in steps])
    targets = np.array([place[step.target.int] for step in steps])
    evidence = np.array([step.evidence for step in steps])
    # The share of the source's mass that takes each step.
    shares = evidence / np.maximum(1.0, np.bincount(sources, weights=evidence))[sources]
    came = np.zeros(len(nodes))
    mass: NDArray[np.floating[Any]] = (1.0 - damping) * restart
    for _ in range(_MAX_STEPS):
        mass = damping * np.bincount(targets, weights=shares * mass[sources], minlength=len(nodes))
        came += mass
        if mass.sum() < _TOLERANCE:
            break
    unit = (1.0 - damping) * damping or 1.0
    return {node: min(limit, mass / unit) for node, mass in zip(nodes, came.tolist(), strict=True) if mass > 0}


def personalized_pagerank(seeds: Mapping[UUID, float], steps: Sequence[Step], *, damping: float) -> dict[UUID, float]:
    """Return each document's Personalized PageRank; together they are 1.

    p = (1 - d) v + d M'p, where v are the seeds' weights and the rows of M the evidence of a document's steps, both
    scaled to sum to 1. A document without steps returns its mass to the seeds. `seeds` have a positive weight. Page et
    al., 1999, as in Gutiérrez et al., HippoRAG, 2024.
    """
    nodes = _nodes(seeds, steps)
    place = {node.int: number for number, node in enumerate(nodes)}
    sources = np.array([place[it.source.int] for it in steps], dtype=np.intp)
    targets = np.array([place[it.target.int] for it in steps], dtype=np.intp)
    evidence = np.array([it.evidence for it in steps])
    total = np.bincount(sources, weights=evidence, minlength=len(nodes))
    shares = evidence / total[sources]
    restart = np.array([seeds.get(node, 0.0) for node in nodes])
    restart /= restart.sum()
    mass = restart
    for _ in range(_MAX_STEPS):
        moved = np.bincount(targets, weights=shares * mass[sources], minlength=len(nodes))
        after = (1.0 - damping) * restart + damping * (moved + mass[total == 0].sum() * restart)
        is_still, mass = np.abs(after - mass).sum() < _TOLERANCE, after
        if is_still:
            break
    return dict(zip(nodes, mass.tolist(), strict=True))


def _nodes(seeds: Iterable[UUID], steps: Sequence[Step]) -> list[UUID]:
    # By their numbers: Python's ids are hashed and compared by calls.
    ids = {it.int: it for it in seeds} | {it.int: it for step in steps for it in (step.source, step.target)}
    return [ids[number] for number in sorted(ids)]


def inverse_distances(seeds: Collection[UUID], steps: Iterable[Step], *, hops: int) -> dict[UUID, float]:
    """Return 1 / distance of the documents within `hops` steps of a seed, found breadth-first; 1 for a seed."""
    targets: dict[UUID, list[UUID]] = defaultdict(list)
    for step in steps:
        targets[step.source].append(step.target)
    found, front = dict.fromkeys(seeds, 1.0), list(seeds)
    for hop in range(1, hops + 1):
        front = [
            it for it in dict.fromkeys(target for source in front for target in targets[source]) if it not in found
        ]
        found |= dict.fromkeys(front, 1.0 / hop)
    return found


def traverse(seeds: Mapping[UUID, float], steps: Sequence[Step], *, hops: int, limit: float) -> dict[UUID, float]:
    """Return what a bounded breadth-first walk lifts each document by, 0 to `limit`: the best path's product.

    The fallback for an incomplete subgraph, where it is still right about the nearest documents.
    """
    out: dict[UUID, list[Step]] = defaultdict(list)
    for step in steps:
        out[step.source].append(step)
    lifts: dict[UUID, float] = {}
    front = dict(seeds)
    for _ in range(hops):
        reached: dict[UUID, float] = {}
        for source, weight in front.items():
            for step in out[source]:
                amount = min(limit, weight * step.evidence)
                if amount > lifts.get(step.target, 0.0):
                    lifts[step.target] = reached[step.target] = amount
        front = reached
    return lifts


def seated(named: Sequence[UUID], steps: Sequence[Step]) -> list[UUID]:
    """Return the reserved slots: the named documents, then the best bridge of each."""
    seats = list(named)
    for document in named:
        bridges = (step for step in steps if step.source == document and step.target not in seats)
        best = min(bridges, key=lambda it: (-it.evidence, it.target), default=None)
        if best is not None:
            seats.append(best.target)
    return seats
