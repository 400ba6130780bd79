"""The pace of a sync in the last minutes, and the time left at that pace. No Django.

Reading items and embedding chunks take different times and alternate, so each is timed separately. The effort per
second reflects how many workers share the sync.
"""

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Final

#: Number of stored marks, and the minimum time between two of them; together they cover the last minutes.
_MAX_MARKS: Final = 13
_SPACING_SECONDS: Final = 5.0
#: Time that the marks must cover for an estimate, and time without work after which there is none.
_MIN_SECONDS: Final = 2.0
_MAX_SILENCE_SECONDS: Final = 120.0
_MAX_SILENCE_FACTOR: Final = 3.0
Mark = Sequence[float]  #: The effort up to a time, as JSON: seconds since the epoch, then the fields of `Effort`.


@dataclass(frozen=True, slots=True)
class Effort:
    """An amount of work: items that were read and parsed, chunks that were embedded, and the seconds for each."""

    items: int = 0
    reading_seconds: float = 0.0
    chunks: int = 0
    embedding_seconds: float = 0.0

    def __add__(self, other: "Effort") -> "Effort":
        return Effort(*(mine + its for mine, its in zip(astuple(self), astuple(other), strict=True)))

    def __sub__(self, other: "Effort") -> "Effort":
        return Effort(*(mine - its for mine, its in zip(astuple(self), astuple(other), strict=True)))

    @property
    def seconds(self) -> float:
        """The time of one worker for all of it."""
        return self.reading_seconds + self.embedding_seconds


def with_work(marks: Sequence[Mark], done: Effort, *, at: float) -> list[Mark]:
    """Return the marks with one more, for the effort since the last of them."""
    last = marks[-1] if marks else (at,)
    added: list[Mark] = [*marks, [max(at, last[0]), *astuple(_work(last) + done)]]
    # The last mark is always the current one; it replaces a mark that follows another too soon.
    if len(added) > 2 and added[-2][0] - added[-3][0] < _SPACING_SECONDS:  # noqa: PLR2004 -- the last two after a first
        del added[-2]
    return added[-_MAX_MARKS:]


def seconds_left(marks: Sequence[Mark], *, items: int, chunks: float, per_item: float, at: float) -> float | None:
    """Return the seconds for the remaining work at the pace of the last minutes; None without an estimate.

    Remaining are the chunks of items that are parsed, and items, which have about so many chunks each.
    """
    if len(marks) < 2:  # noqa: PLR2004 -- two make a pace
        return None
    first, last = marks[0], marks[-1]
    seen, silence = last[0] - first[0], max(at - last[0], 0.0)
    recent, total = _work(last) - _work(first), _work(last)
    chunks += items * per_item
    reading = _each(recent.reading_seconds, recent.items, total.reading_seconds, total.items) if items else 0.0
    embedding = _each(recent.embedding_seconds, recent.chunks, total.embedding_seconds, total.chunks) if chunks else 0.0
    is_silent = silence > max(_MAX_SILENCE_SECONDS, _MAX_SILENCE_FACTOR * seen / (len(marks) - 1))
    if reading is None or embedding is None or seen < _MIN_SECONDS or is_silent or not recent.seconds:
        return None
    left = (items * reading + chunks * embedding) * seen / recent.seconds
    return max(left - silence, 0.0)


def _work(mark: Mark) -> Effort:
    items, reading, chunks, embedding = (*mark[1:], 0, 0, 0, 0)[:4]
    return Effort(int(items), reading, int(chunks), embedding)


def _each(recent: float, count: int, total: float, total_count: int) -> float | None:
    """Return the seconds for one, from the last minutes or else from the total; None for none so far."""
    if count:
        return recent / count
    return total / total_count if total_count else None
