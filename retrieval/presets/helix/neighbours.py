"""What stands beside the best hits, and in their sections. Pure."""

from collections.abc import Mapping
from typing import Final

from retrieval.engine.types import ChunkId, Lift
from retrieval.presets.helix.expansion import GraphConfig

NEXT: Final = "next"
SECTION: Final = "section"
#: Chunks of one section that are lifted, the nearest first.
_MAX_OF_SECTION: Final = 6


def neighbours_of(
    scores: Mapping[ChunkId, float], sections: Mapping[ChunkId, tuple[int, int]], config: GraphConfig
) -> dict[ChunkId, Lift]:
    """Return what stands in the section of one of the best hits, with its lift: a share of that hit's fused score.

    `sections` are the first and last ordinals of the hits' sections; a hit without one has no neighbours. What stands
    directly before or after it gets `next_share`, the rest `section_share`; of several lifts the greatest counts.
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
