"""Which passages of a document a model reads in one run, for late chunking. Pure arithmetic."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Window:
    """Passages that share a run."""

    #: Their places in the document, in order.
    places: list[int]
    #: Where each stands in the run, (first, after last) in tokens.
    spans: list[tuple[int, int]]


def windows(lengths: Sequence[int], room: int) -> list[Window]:
    """Put passages of so many tokens, in order, into as few runs of at most `room` tokens as that takes.

    A passage longer than `room` has a run alone, cut at its end. Raises ValueError without room.
    """
    if room <= 0:
        raise ValueError("there is no room for a passage")
    found: list[Window] = []
    for place, length in enumerate(min(length, room) for length in lengths):
        start = found[-1].spans[-1][1] if found else 0
        if not found or start + length > room:
            found.append(Window([], []))
            start = 0
        found[-1].places.append(place)
        found[-1].spans.append((start, start + length))
    return found
