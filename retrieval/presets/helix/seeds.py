"""Seeds of the graph: fused scores, the chunks that are read for names, and the neighbours of the best hits. Pure."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from retrieval.engine.types import ChunkId, Lift, Ranking
from retrieval.graph.links import SeedText
from retrieval.presets.helix.expansion import GraphConfig
from retrieval.ranking.fusion import leg_of


@dataclass(frozen=True, slots=True)
class SeedChunks:
    """The chunks of the seeds that are read."""

    #: The best of those found, and at least one of each named document.
    chunks: frozenset[ChunkId]
    #: Documents whose first chunks are read too.
    begun: tuple[UUID, ...]
    unfound: frozenset[UUID]
    #: Maximum number of chunks, besides those of named documents.
    limit: int

    def of(self, read: Sequence[SeedText], scores: Mapping[ChunkId, float]) -> list[SeedText]:
        """Return the chunks whose links are followed, best first; first chunks fill the remaining places."""
        ranked = sorted(read, key=lambda it: (-scores.get(it.chunk, 0.0), it.chunk.ordinal, it.chunk))
        others = [it.chunk for it in ranked if it.chunk not in self.chunks]
        own = {it.document_id: it for it in reversed(others) if it.document_id in self.unfound}
        room = max(0, self.limit - len(self.chunks) - len(own))
        taken = self.chunks | {*own.values()} | {*[it for it in others if it not in own.values()][:room]}
        return [it for it in ranked if it.chunk in taken]


def seed_chunks(
    scores: Mapping[ChunkId, float], seeds: Collection[UUID], named: Collection[UUID], *, limit: int
) -> SeedChunks:
    """Return the `limit` best found chunks of the seeds, with at least one of each named document."""
    held = sorted((it for it in scores if it.document_id in seeds), key=lambda it: (-scores[it], it))
    best = {it.document_id: it for it in reversed(held)}
    chunks = {*held[:limit], *(best[document] for document in named if document in best)}
    unfound = frozenset(named) - best.keys()
    begun = tuple(it for it in seeds if len(chunks) < limit or it in unfound)
    return SeedChunks(frozenset(chunks), begun, unfound, limit)


#: Weight of the vector ranking; the text rankings have the rest.
_DENSE_SHARE: Final = 0.6
_DENSE: Final = "dense"


def fused_scores(rankings: Mapping[str, Ranking]) -> dict[ChunkId, float]:
    """Return 0.6 of the cosine plus 0.4 of the text score, each min-max-normalised within its leg's ranking.

    A chunk that a leg did not find has 0 there. If one side found nothing, the other has the full weight. Several
    rankings of a side, such as those of rephrasings, share its weight equally.
    """
    found = {leg: ranking for leg, ranking in rankings.items() if ranking}
    vectors = [leg for leg in found if leg_of(leg) == _DENSE]
    words = [leg for leg in found if leg_of(leg) != _DENSE]
    share = _DENSE_SHARE if words and vectors else float(bool(vectors))
    shares = dict.fromkeys(vectors, share / max(1, len(vectors)))
    shares |= dict.fromkeys(words, (1.0 - share) / max(1, len(words)))
    scores: dict[ChunkId, float] = {}
    for leg, ranking in found.items():
        lowest, highest = min(hit.score for hit in ranking), max(hit.score for hit in ranking)
        for hit in ranking:
            part = (hit.score - lowest) / (highest - lowest) if highest > lowest else 1.0
            scores[hit.chunk_id] = scores.get(hit.chunk_id, 0.0) + shares[leg] * part
    return scores


NEXT: Final = "next"
SECTION: Final = "section"
#: Chunks of one section that are lifted, nearest first.
_MAX_OF_SECTION: Final = 6


def neighbours_of(
    scores: Mapping[ChunkId, float], sections: Mapping[ChunkId, tuple[int, int]], config: GraphConfig
) -> dict[ChunkId, Lift]:
    """Return the chunks in the sections of the best hits, with their lifts: shares of that hit's fused score.

    `sections` are the first and last ordinals of the hits' sections; a hit without one has no neighbours. Adjacent
    chunks get `next_share`, the rest `section_share`; of several lifts the greatest counts.
    """
    best = sorted(scores, key=lambda chunk: (-scores[chunk], chunk))[: config.top_seeds]
    lifts: dict[ChunkId, Lift] = {}
    for seed in best:
        first, last = sections.get(seed, (0, -1))
        others = (it for it in range(first, last + 1) if it != seed.ordinal)
        for ordinal in sorted(others, key=lambda it: (abs(it - seed.ordinal), it))[:_MAX_OF_SECTION]:
            chunk = ChunkId(seed.document_id, ordinal)
            is_next = abs(ordinal - seed.ordinal) == 1
            amount = scores[seed] * (config.next_share if is_next else config.section_share)
            if amount > 0 and (chunk not in lifts or lifts[chunk].amount < amount):
                lifts[chunk] = Lift(NEXT if is_next else SECTION, amount, source=seed)
    return lifts
