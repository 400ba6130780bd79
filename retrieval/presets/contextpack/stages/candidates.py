"""The nearest chunks as candidates, without a second leg."""

from dataclasses import dataclass, replace
from typing import ClassVar

from retrieval.engine.about import About, BaseStage, StageGroup, score_fact
from retrieval.engine.state import SearchState
from retrieval.engine.types import ChunkId, Hit
from retrieval.ranking.fusion import best_first


@dataclass(frozen=True, slots=True)
class Candidates(BaseStage, name="candidates", needs={"rankings"}, gives={"hits", "order"}):
    """Order the hits of the vector leg by cosine; of a chunk that rephrasings found too, the highest counts."""

    about: ClassVar[About] = About(
        "candidates", "Orders the hits of the vector leg by cosine.", group=StageGroup.MERGE, fact=score_fact
    )

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state with the candidates as hits."""
        found: dict[ChunkId, Hit] = {}
        for leg, ranking in state.rankings.items():
            for rank, hit in enumerate(ranking, start=1):
                known = found.get(hit.chunk_id, hit)
                best = hit if hit.score > known.score else known
                ranks = {**known.ranks, leg: rank}
                found[hit.chunk_id] = replace(best, ranks=ranks, contributions={"dense": best.score})
        return replace(state, hits=tuple(sorted(found.values(), key=best_first)))
