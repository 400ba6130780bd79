"""Merging of a document's parts with their neighbours, in linear time."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from typing import TypeAlias, TypeVar

_Part = TypeVar("_Part")


class Neighbour(IntEnum):
    """The neighbour that a part is merged with; the earlier one sorts first."""

    BEFORE = 0
    AFTER = 1


Key: TypeAlias = tuple[int, int, Neighbour]


def filled(parts: Iterable[_Part], size: Callable[[_Part], int], limit: int) -> Iterator[list[_Part]]:
    """Yield runs of parts whose sizes add up to at most the limit; a larger part is a separate run."""
    run: list[_Part] = []
    total = 0
    for part in parts:
        added = size(part)
        if run and total + added > limit:
            yield run
            run, total = [], 0
        run.append(part)
        total += added
    if run:
        yield run


def merged_with(
    parts: Sequence[_Part],
    fitting: Callable[[Neighbour, _Part, _Part], Iterable[Key]],
    together: Callable[[_Part, _Part], _Part],
) -> list[_Part]:
    """Return the parts, each merged with its neighbours as long as `fitting` yields a key for one; the lowest wins."""
    done: list[_Part] = []
    waiting = list(reversed(parts))
    while waiting:
        part = waiting.pop()
        found = list(fitting(Neighbour.BEFORE, part, done[-1])) if done else []
        found += fitting(Neighbour.AFTER, part, waiting[-1]) if waiting else ()
        side = min(found)[2] if found else None
        if side is Neighbour.BEFORE:
            waiting.append(together(done.pop(), part))
        elif side is Neighbour.AFTER:
            waiting.append(together(part, waiting.pop()))
        else:
            done.append(part)
    return done
