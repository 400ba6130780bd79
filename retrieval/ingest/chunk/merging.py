"""Puts parts of a document together with their neighbours, in a time that grows with their number alone."""

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import TypeVar

_Part = TypeVar("_Part")


class Neighbour(IntEnum):
    """Which neighbour a part is put together with; the earlier one comes first in order."""

    BEFORE = 0
    AFTER = 1


def merged_with(
    parts: Sequence[_Part],
    choose: Callable[[_Part | None, _Part, _Part | None], Neighbour | None],
    together: Callable[[_Part, _Part], _Part],
) -> list[_Part]:
    """Return the parts, each put together with the neighbour that `choose` says, for as long as it says one.

    `choose` gets the part before, the part, and the one after; None stands for none.
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
