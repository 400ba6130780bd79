"""Batching, padding and pooling: from token states to one unit vector per text, windows of long texts and passages."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

_Token = TypeVar("_Token")


def length_sorted_batches(lengths: Sequence[int], batch_tokens: int) -> list[list[int]]:
    """Group positions of `lengths` into runs whose padded size (longest x count) is at most `batch_tokens`.

    The longest texts come first: the longest work starts first, and similar lengths need little padding. A text
    longer than the budget runs alone; with a budget of 0 every text does.
    """
    batches: list[list[int]] = []
    for position in sorted(range(len(lengths)), key=lambda position: (-lengths[position], position)):
        if batches and lengths[batches[-1][0]] * (len(batches[-1]) + 1) <= batch_tokens:
            batches[-1].append(position)
        else:
            batches.append([position])
    return batches


def pad(token_ids: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    """Return ids and attention mask, both of shape (texts, longest), with zeros at the right as padding."""
    shape = (len(token_ids), max(map(len, token_ids)))
    ids, mask = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for row, sequence in enumerate(token_ids):
        ids[row, : len(sequence)] = sequence
        mask[row, : len(sequence)] = 1
    return ids, mask


def cls_pooling(states: Floats, _mask: Ints) -> Floats:
    """Return the state of the first token of each text: (texts, tokens, dim) -> (texts, dim)."""
    first: Floats = states[:, 0]
    return first


def mean_pooling(states: Floats, mask: Ints) -> Floats:
    """Return the mean of each text's token states without padding: (texts, tokens, dim) -> (texts, dim)."""
    weights = mask[:, :, np.newaxis].astype(np.float32)
    mean: Floats = (states * weights).sum(axis=1) / weights.sum(axis=1)
    return mean


POOLINGS: Final[Mapping[str, Callable[[Floats, Ints], Floats]]] = {"cls": cls_pooling, "mean": mean_pooling}


def unit_length(vectors: Floats) -> Floats:
    """Return the vectors of the last axis divided by their Euclidean length; one of zeros stays."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)


def shortened(vectors: Floats, dim: int) -> Floats:
    """Return the first `dim` components of each row, normalised to unit length."""
    return vectors if vectors.shape[1] == dim else unit_length(vectors[:, :dim])


def span_pooling(states: Floats, spans: Sequence[tuple[int, int]]) -> Floats:
    """Return the mean of each span's token states: (tokens, dim) -> (spans, dim).

    A span is (first, after last) in tokens; an empty one, which has no direction, gets the mean of all. Günther et al.,
    Late Chunking, 2024.
    """
    means = (states[first:end] if end > first else states for first, end in spans)
    return np.stack([rows.mean(axis=0) for rows in means]).astype(np.float32)


def window_pooling(vectors: Floats, lengths: Sequence[Sequence[int]]) -> Floats:
    """Return a vector for each text: the mean of its windows' vectors, weighted by their tokens, at unit length.

    `lengths` has the tokens of each text's windows; the vectors have shape (windows of all texts, dim), in order. The
    vector of a text with one window stays as it is.
    """
    ends = np.cumsum([len(windows) for windows in lengths], dtype=np.intp)
    pooled = np.zeros((len(lengths), vectors.shape[1]), np.float32)
    for place, (windows, end) in enumerate(zip(lengths, ends, strict=True)):
        rows = vectors[end - len(windows) : end]
        pooled[place] = rows[0] if len(rows) == 1 else unit_length(np.asarray(windows, np.float32) @ rows)
    return pooled


def overlapping(tokens: list[_Token], size: int, overlap: int) -> list[list[_Token]]:
    """Return consecutive parts of at most `size` tokens; each begins with the end of the previous one."""
    return [tokens[first : first + size] for first in range(0, max(1, len(tokens) - overlap), size - overlap)]


@dataclass(frozen=True, slots=True)
class Window:
    """Passages that share a run of the model."""

    places: list[int]  #: Indexes of the passages in the document, in order.
    spans: list[tuple[int, int]]  #: Position of each passage in the run, (first, after last) in tokens.


def windows(lengths: Sequence[int], room: int) -> list[Window]:
    """Group passages, given by their lengths in tokens, in order into the fewest runs of at most `room` tokens.

    Raises ValueError for a passage longer than `room`, and without room.
    """
    if room <= 0 or max(lengths, default=0) > room:
        raise ValueError("room must be positive and hold each passage")
    found: list[Window] = []
    for place, length in enumerate(lengths):
        start = found[-1].spans[-1][1] if found else 0
        if not found or start + length > room:
            found.append(Window([], []))
            start = 0
        found[-1].places.append(place)
        found[-1].spans.append((start, start + length))
    return found
