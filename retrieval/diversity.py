"""Removing hits that repeat what a better placed hit already says."""

from collections.abc import Callable

from retrieval.types import Drop, DropReason, Hit, Ranking


def drop_exact_duplicates(
    hits: Ranking, *, preference: Callable[[Hit], tuple[float, ...]]
) -> tuple[Ranking, tuple[Drop, ...]]:
    """Keep one hit per content hash: the one with the highest preference, in the best place of its group.

    Equal preferences keep the better placed hit. Order is otherwise unchanged.
    """
    groups: dict[str, list[Hit]] = {}
    for hit in hits:
        groups.setdefault(hit.chunk.content_hash, []).append(hit)
    kept: list[Hit] = []
    drops: list[Drop] = []
    for group in groups.values():
        best = max(group, key=preference)
        kept.append(best)
        detail = f"same text as {best.chunk_id}"
        drops.extend(Drop(hit.chunk_id, DropReason.DUPLICATE, detail) for hit in group if hit is not best)
    return tuple(kept), tuple(drops)
