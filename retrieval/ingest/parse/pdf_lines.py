"""The lines of a page of a PDF with the place where each stands; nothing here touches a file."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Final

#: A gap this many times the usual leading separates two blocks.
_BLOCK_GAP: Final = 1.35
#: Gaps larger than this many line heights do not count as leading.
_MAX_LEADING: Final = 2.5


@dataclass(frozen=True, slots=True)
class Line:
    """One line of text; coordinates in points, `bottom` growing up the page."""

    text: str
    page: int
    left: float
    right: float
    bottom: float
    height: float


def usual_leading(lines: Sequence[Line]) -> float:
    """Return the usual distance between the lines of a page, 0 when it has none."""
    gaps = [
        above.bottom - below.bottom
        for above, below in pairwise(lines)
        if 0 < above.bottom - below.bottom < _MAX_LEADING * max(above.height, 1)
    ]
    return median(gaps) if gaps else 0


def is_apart(above: Line, below: Line, leading: float) -> bool:
    """Return True when there is more room between two lines than between lines of one paragraph."""
    return above.bottom - below.bottom > _BLOCK_GAP * (leading or max(above.height, 1))
