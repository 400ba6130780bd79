"""How fast a sync works, from what its work came to lately, and how long the rest takes at that pace. No Django.

Reading items and embedding chunks take different times and alternate, so each is timed by itself; how many workers
share the sync shows in how much work fits into a second.
"""

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Final

#: Moments that are kept, and the least time between two of them; together they are the last minutes.
_MAX_MARKS: Final = 13
_SPACING_SECONDS: Final = 5.0
#: What has to be seen before anything is said, and after how much silence nothing is said any more.
_MIN_SECONDS: Final = 2.0
_MAX_SILENCE_SECONDS: Final = 120.0
_MAX_SILENCE_FACTOR: Final = 3.0


@dataclass(frozen=True, slots=True)
class Effort:
    """An amount of work: items that were read and parsed, chunks that were embedded, and the seconds that each took."""

    items: int = 0
    reading_seconds: float = 0.0
    chunks: int = 0
    embedding_seconds: float = 0.0

    def __add__(self, other: "Effort") -> "Effort":
        """Return both together."""
        return Effort(*(mine + its for mine, its in zip(astuple(self), astuple(other), strict=True)))

    def __sub__(self, other: "Effort") -> "Effort":
        """Return what is in this and not in the other."""
        return Effort(*(mine - its for mine, its in zip(astuple(self), astuple(other), strict=True)))

    @property
    def seconds(self) -> float:
        """How long it took one worker."""
        return self.reading_seconds + self.embedding_seconds


@dataclass(frozen=True, slots=True)
class Rest:
    """What a sync has still to do."""

    #: Items that are not parsed yet.
    items: int
    #: Chunks of parsed items that have no vector yet.
    chunks: int
    #: Chunks that an item was cut to so far, on average.
    chunks_per_item: float


#: The work of a sync up to a moment: its seconds since the epoch, then the fields of `Effort`. As JSON stores it.
Mark = Sequence[float]


def with_work(marks: Sequence[Mark], done: Effort, *, at: float) -> list[Mark]:
    """Return marks with the work that was done since the last of them, at this moment."""
    last = marks[-1] if marks else (at,)
    added: list[Mark] = [*marks, [max(at, last[0]), *astuple(_work(last) + done)]]
    # The last one is always the latest; it takes the place of one that lies too close behind another.
    if len(added) > 2 and added[-2][0] - added[-3][0] < _SPACING_SECONDS:  # noqa: PLR2004 -- the last two behind a first
        del added[-2]
    return added[-_MAX_MARKS:]


def seconds_left(marks: Sequence[Mark], rest: Rest, *, at: float) -> float | None:
    """Return the seconds that the rest takes at the pace of the last minutes; None where nothing tells yet."""
    if len(marks) < 2:  # noqa: PLR2004 -- two make a pace
        return None
    first, last = marks[0], marks[-1]
    seen, silence = last[0] - first[0], max(at - last[0], 0.0)
    lately, whole = _work(last) - _work(first), _work(last)
    chunks = rest.chunks + rest.items * rest.chunks_per_item
    reading = _each(lately.reading_seconds, lately.items, whole.reading_seconds, whole.items) if rest.items else 0.0
    embedding = _each(lately.embedding_seconds, lately.chunks, whole.embedding_seconds, whole.chunks) if chunks else 0.0
    is_silent = silence > max(_MAX_SILENCE_SECONDS, _MAX_SILENCE_FACTOR * seen / (len(marks) - 1))
    if reading is None or embedding is None or seen < _MIN_SECONDS or is_silent or not lately.seconds:
        return None
    left = (rest.items * reading + chunks * embedding) * seen / lately.seconds
    return max(left - silence, 0.0)


def _work(mark: Mark) -> Effort:
    items, reading, chunks, embedding = (*mark[1:], 0, 0, 0, 0)[:4]
    return Effort(int(items), reading, int(chunks), embedding)


def _each(lately: float, count: int, whole: float, whole_count: int) -> float | None:
    """Return the seconds for one, by the last minutes or else by all of the time; None for none so far."""
    if count:
        return lately / count
    return whole / whole_count if whole_count else None
