"""Near duplicates among a pool's hits by their signatures: locality-sensitive hashing in bands. Pure.

A signature of 128 minima is cut into 25 bands of 5. Two texts of Jaccard similarity s share a whole band with
probability 1 - (1 - s**5)**25: 0.99995 at 0.8, 0.55 at 0.5 and 0.01 at 0.2, so that few pairs are compared and none
that counts is missed. What shares a band is compared by the whole signature (Leskovec, Rajaraman and Ullman, "Mining
of Massive Datasets", 3.4).
"""

from collections.abc import Iterator
from typing import Final

from retrieval.engine.state import Drop, DropReason
from retrieval.engine.types import Hit, Ranking
from retrieval.text.minhash import similarity

_ROWS: Final = 5


def drop_near_duplicates(hits: Ranking, *, min_similarity: float) -> tuple[Ranking, tuple[Drop, ...]]:
    """Keep the best of several hits that say the same, and say of each other one which it was dropped for.

    A hit is dropped only for a kept one that it resembles itself, the most alike of them. Order is otherwise unchanged.
    """
    shared = _shared_bands(hits)
    if not shared:
        return hits, ()
    kept: list[Hit] = []
    drops: list[Drop] = []
    bands: dict[tuple[int, bytes], list[Hit]] = {}
    for hit in hits:
        own = [band for band in _bands(hit.chunk.minhash) if band in shared]
        known = {other.chunk_id: other for band in own for other in bands.get(band, ())}
        twin, likeness = _closest(hit, list(known.values()))
        if twin is not None and likeness >= min_similarity:
            drops.append(_drop(hit, twin, likeness, min_similarity))
            continue
        kept.append(hit)
        for band in own:
            bands.setdefault(band, []).append(hit)
    return tuple(kept), tuple(drops)


def _shared_bands(hits: Ranking) -> set[tuple[int, bytes]]:
    """Return the bands that more than one hit has, which in most pools are none."""
    signatures = [hit.chunk.minhash for hit in hits]
    shared: set[tuple[int, bytes]] = set()
    for start in range(0, max(map(len, signatures), default=0) - _ROWS + 1, _ROWS):
        seen: set[bytes] = set()
        for signature in signatures:
            if len(band := signature[start : start + _ROWS]) < _ROWS:
                continue
            if band in seen:
                shared.add((start, band))
            seen.add(band)
    return shared


def _bands(signature: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield each whole band of a signature with its place."""
    for start in range(0, len(signature) - _ROWS + 1, _ROWS):
        yield start, signature[start : start + _ROWS]


def _closest(hit: Hit, others: list[Hit]) -> tuple[Hit | None, float]:
    """Return the most similar of some hits, the better placed among equals, and the similarity."""
    best: tuple[Hit | None, float] = (None, 0.0)
    for other in others:
        likeness = similarity(hit.chunk.minhash, other.chunk.minhash)
        if likeness > best[1]:
            best = (other, likeness)
    return best


def _drop(hit: Hit, twin: Hit, likeness: float, minimum: float) -> Drop:
    return Drop(
        hit.chunk_id,
        DropReason.DUPLICATE,
        f"{likeness:.2f} like {twin.chunk_id}",
        {"likeness": likeness, "minimum": minimum},
        instead=twin.chunk_id,
    )
