"""Merging of a document's parts with their neighbours, in linear time."""

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import TypeVar

_Part = TypeVar("_Part")


class Neighbour(IntEnum):
    """The neighbour that a part is merged with; the earlier one sorts first."""

    BEFORE = 0
    AFTER = 1


def merged_with(
    parts: Sequence[_Part],
    choose: Callable[[_Part | None, _Part, _Part | None], Neighbour | None],
    together: Callable[[_Part, _Part], _Part],
) -> list[_Part]:
    """Return the parts, each merged with the neighbour that `choose` returns until it returns None.

    `choose` gets the previous part, the part, and the next one; None if there is none.
    """
    done: list[_Part] = []
    waiting = list(reversed(parts))
    while waiting:
        part = waiting.pop()
        side = choose(done[-1] if done else None, part, waiting[-1] if waiting else None)
        if side is Neighbour.BEFORE:
            waiting.append(together(done.pop(), part))
        elif side is Neighbour.AFTER:
            waiting.append(together(part, waiting.pop()))
        else:
            done.append(part)
    return done
