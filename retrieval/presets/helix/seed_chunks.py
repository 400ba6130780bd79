"""Which chunks of the seeds are read for names: a long document has hundreds. Pure."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from retrieval.engine.types import ChunkId
from retrieval.graph.links import SeedText


@dataclass(frozen=True, slots=True)
class SeedChunks:
    """What is read of the seeds."""

    #: The best of those that were found, and of each named document at least one.
    chunks: frozenset[ChunkId]
    #: Documents of which the first chunks are read too.
    begun: tuple[UUID, ...]
    #: Named documents of which nothing was found.
    unfound: frozenset[UUID]
    #: Chunks that are read, but for the named documents' own.
    limit: int

    def of(self, read: Sequence[SeedText], scores: Mapping[ChunkId, float]) -> list[SeedText]:
        """Return what links are taken from, of what was read, the best first; first chunks fill what room is left."""
        ranked = sorted(read, key=lambda it: (-scores.get(it.chunk, 0.0), it.chunk.ordinal, it.chunk))
        others = [it.chunk for it in ranked if it.chunk not in self.chunks]
        own = {it.document_id: it for it in reversed(others) if it.document_id in self.unfound}
        room = max(0, self.limit - len(self.chunks) - len(own))
        taken = self.chunks | {*own.values()} | {*[it for it in others if it not in own.values()][:room]}
        return [it for it in ranked if it.chunk in taken]


def seed_chunks(
    scores: Mapping[ChunkId, float], seeds: Collection[UUID], named: Collection[UUID], *, limit: int
) -> SeedChunks:
    """Return the `most` best of the seeds' chunks that were found; a named document is not left out for better ones."""
    held = sorted((it for it in scores if it.document_id in seeds), key=lambda it: (-scores[it], it))
    best = {it.document_id: it for it in reversed(held)}
    chunks = {*held[:limit], *(best[document] for document in named if document in best)}
    unfound = frozenset(named) - best.keys()
    begun = tuple(it for it in seeds if len(chunks) < limit or it in unfound)
    return SeedChunks(frozenset(chunks), begun, unfound, limit)
