"""The minimum nearness and quality of chunks before reranking."""

from retrieval.encoders.cosine_scale import UNSCALED, CosineScale
from retrieval.engine.state import Drop, DropReason
from retrieval.engine.types import Hit, Ranking


def above_score_floor(
    hits: Ranking, floor: float, scale: CosineScale = UNSCALED, *, why: str = "floor"
) -> tuple[Ranking, tuple[Drop, ...]]:
    """Keep hits whose nearness reaches the floor, in order; one without a cosine stays.

    `why` names the floor in the drops.
    """
    kept: list[Hit] = []
    drops: list[Drop] = []
    for hit in hits:
        nearness = scale.nearness_of(hit)
        if nearness is None or nearness >= floor:
            kept.append(hit)
        else:
            numbers = {"nearness": nearness, "cosine": hit.signals["cosine"], "floor": floor}
            detail = f"scaled similarity {nearness:.2f} (cosine {hit.signals['cosine']:.2f}), {why} {floor:.2f}"
            drops.append(Drop(hit.chunk_id, DropReason.BELOW_FLOOR, detail, numbers))
    return tuple(kept), tuple(drops)


def above_quality_floor(hits: Ranking, floor: float) -> tuple[Ranking, tuple[Drop, ...]]:
    """Keep hits whose quality reaches the floor, in order."""
    drops = tuple(
        Drop(
            hit.chunk_id,
            DropReason.QUALITY,
            f"quality {hit.chunk.quality:.2f}, floor {floor:.2f}",
            {"quality": hit.chunk.quality, "floor": floor},
        )
        for hit in hits
        if hit.chunk.quality < floor
    )
    return tuple(hit for hit in hits if hit.chunk.quality >= floor), drops
