"""Removing hits that repeat another: one rule for what is dropped, two ways to find what may be alike. Pure.

By **words**: pairs whose simhash fingerprints are close are compared word by word. By **signature**: a MinHash
signature of 128 minima is cut into 25 bands of 5. Two texts of Jaccard similarity s share a band with probability
1 - (1 - s**5)**25: 0.99995 at 0.8, 0.55 at 0.5 and 0.01 at 0.2. Pairs that share one are compared by the complete
signature (Leskovec, Rajaraman and Ullman, "Mining of Massive Datasets", 3.4).
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from retrieval.engine.state import Drop, DropReason
from retrieval.engine.types import Hit, Ranking
from retrieval.ranking.resemblance import Words, resemblance
from retrieval.text.minhash import PERMUTATIONS, similarity
from retrieval.text.simhash import close_pairs, hamming_limit

Preference = Callable[[Hit], tuple[float, ...]]
#: The similarity of the hits at two places, 0 where they do not count as near duplicates.
Compare = Callable[[int, int], float]

_DIGITS: Final = re.compile(r"\d+")
#: Pairs whose words are compared in one search; a pool of nothing but near duplicates must not take its time.
_MAX_COMPARED: Final = 200
_BAND_BYTES: Final = 5
_BANDS: Final = PERMUTATIONS // _BAND_BYTES


def drop_by_words(
    hits: Ranking, *, preference: Preference, min_similarity: float, top_k: int
) -> tuple[Ranking, tuple[Drop, ...]]:
    """Keep one of several hits with the same or nearly the same words (`resemblance`), in the best place of its group.

    The hit with the highest preference stays; among equals the better placed one, among equal scores the one with the
    lower chunk id. A hit is dropped only for one that it resembles itself, never for one that resembles a third. Only
    as many hits are compared as `top_k` kept ones need, 200 pairs at most; near duplicates behind them may stay. The
    order is otherwise unchanged.
    """
    order = _by_preference(hits, preference)
    copies: dict[str, int] = {}
    first = {place: copies.setdefault(hits[place].chunk.content_hash, place) for place in order}
    order = [place for place in order if first[place] == place]
    candidates = _close_by_simhash(hits, order, min_similarity)
    compare = _word_comparison(hits, min_similarity)
    window = top_k
    while True:
        representatives = _representatives(order, candidates, compare, window)
        groups = [representatives[first[place]] for place in range(len(hits))]
        shown = len({kept for kept, _ in groups[:window]})
        if shown >= top_k or window >= len(hits):
            return _split(hits, groups, min_similarity)
        window += top_k - shown


def drop_by_signature(hits: Ranking, *, min_similarity: float) -> tuple[Ranking, tuple[Drop, ...]]:
    """Keep the best placed of several hits whose MinHash signatures have at least this estimated Jaccard similarity.

    A hit is dropped only for a kept one that it resembles itself. The order is otherwise unchanged.
    """
    candidates = _sharing_bands([hit.chunk.minhash for hit in hits])
    if not candidates:
        return hits, ()

    def compare(place: int, other: int) -> float:
        found = similarity(hits[place].chunk.minhash, hits[other].chunk.minhash)
        return found if found >= min_similarity else 0.0

    representatives = _representatives(range(len(hits)), candidates, compare, len(hits))
    return _split(hits, [representatives[place] for place in range(len(hits))], min_similarity)


def _representatives(
    order: Iterable[int], candidates: Mapping[int, Sequence[int]], compare: Compare, window: int
) -> dict[int, tuple[int, float]]:
    """Return for each place the place that is kept for it, itself where it stays, and how alike they are.

    `order` has the most preferred place first; `candidates` has for a place those preferred to it. Of two near
    duplicates one has to be placed before `window`.
    """
    found: dict[int, tuple[int, float]] = {}
    for place in order:
        found[place] = (place, 1.0)
        for other in candidates.get(place, ()):
            if found[other][0] == other and min(place, other) < window and (likeness := compare(place, other)):
                found[place] = (other, likeness)
                break
    return found


def _split(
    hits: Ranking, groups: Sequence[tuple[int, float]], min_similarity: float
) -> tuple[Ranking, tuple[Drop, ...]]:
    kept = tuple(hits[place] for place in dict.fromkeys(place for place, _ in groups))
    return kept, tuple(
        Drop(
            hit.chunk_id,
            DropReason.DUPLICATE,
            f"same text as {twin.chunk_id}" if _is_copy(hit, twin) else f"{likeness:.2f} like {twin.chunk_id}",
            {"likeness": likeness, "minimum": min_similarity},
            instead=twin.chunk_id,
        )
        for hit, (place, likeness) in zip(hits, groups, strict=True)
        if (twin := hits[place]) is not hit
    )


def _is_copy(one: Hit, other: Hit) -> bool:
    return one.chunk.content_hash == other.chunk.content_hash


def _by_preference(hits: Ranking, preference: Preference) -> list[int]:
    """Return the places by preference, then by the first place of an equal score, then by chunk id."""
    level: dict[tuple[str, float], int] = {}
    for place, hit in enumerate(hits):
        level.setdefault((hit.score_type, hit.score), place)
    return sorted(
        range(len(hits)),
        key=lambda place: (
            [-value for value in preference(hits[place])],
            level[hits[place].score_type, hits[place].score],
            hits[place].chunk_id,
        ),
    )


def _close_by_simhash(hits: Ranking, order: Sequence[int], min_similarity: float) -> Mapping[int, list[int]]:
    """Return for each place those before it in `order` whose fingerprints are close and whose digits are the same."""

    def digits(number: int) -> int:
        return hash(tuple(_DIGITS.findall(hits[order[number]].chunk.text)))

    close: defaultdict[int, list[int]] = defaultdict(list)
    fingerprints = [hits[place].chunk.simhash for place in order]
    for one, other in close_pairs(fingerprints, hamming_limit(min_similarity), digits):
        close[order[other]].append(order[one])
    return close


def _word_comparison(hits: Ranking, min_similarity: float) -> Compare:
    """Return what compares the words of two places, once each, and nothing more after 200 pairs."""
    words = [Words(hit.chunk.text) for hit in hits]
    compared: dict[tuple[int, int], float] = {}

    def compare(place: int, other: int) -> float:
        pair = (min(place, other), max(place, other))
        if pair not in compared and len(compared) < _MAX_COMPARED:
            compared[pair] = resemblance(words[pair[0]], words[pair[1]], min_similarity)
        return compared.get(pair, 0.0)

    return compare


def _sharing_bands(signatures: Sequence[bytes]) -> Mapping[int, Sequence[int]]:
    """Return for each place those before it that share a band with it; in most pools there are none."""
    places = [place for place, signature in enumerate(signatures) if signature]
    minima = np.frombuffer(b"".join(signatures), np.uint8).reshape(len(places), PERMUTATIONS)
    bands = minima[:, : _BANDS * _BAND_BYTES].reshape(len(places), _BANDS, _BAND_BYTES)
    keys = bands.astype(np.uint64) @ (1 << 8 * np.arange(_BAND_BYTES, dtype=np.uint64))
    sharing: defaultdict[int, list[int]] = defaultdict(list)
    if (np.diff(np.sort(keys, axis=0), axis=0) == 0).any():
        for one, other in np.argwhere(np.tril((keys[:, None] == keys).any(axis=2), -1)):
            sharing[places[one]].append(places[other])
    return sharing
