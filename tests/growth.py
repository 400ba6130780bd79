"""Hostile texts, and how the processor time for them grows with their length."""

import gc
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from math import inf
from typing import Final, NamedTuple

TINY, SHORT, LONG, LONGEST = 250, 2_000, 10_000, 100_000
#: Linear work grows tenfold from one of the two greatest lengths to the other; quadratic work a hundredfold.
MAX_GROWTH: Final = 12.0
#: What makes an object of every word leaves the processor's caches on the way, and may sort them.
MAX_GROWTH_OF_OBJECTS: Final = 20.0
#: Noise at the small lengths is larger: what grows more there is measured at the great ones.
_SUSPECT_GROWTH: Final = 1.4
#: What takes less time is fast at any length, by length: quadratic work takes far more.
_FAST_SECONDS: Final = {SHORT: 0.00015, LONGEST: 0.002}
_LIMIT_SECONDS: Final = 3.0
_REPEATS: Final = 5

#: What runs are made of: letters of several scripts, digits, white space, and the signs that texts are written with.
SIGNS: Final = (
    *"aZ1 \n\t_-+*#=|/\\.,;:!?'\"`~@&%$^<>()[]{}",
    *("\u00e9", "\u0441", "\u4e2d", "\u0e01", "\u05d0", "\u0301", "\u00a0", "\u2019", "\u201c", "\u2013", "\u2022"),
    *("\u3002", "\u2026", "\u00a9", "\u200b", "\U0001f600"),
)
MIXTURES: Final = (
    *(
        "a ",
        "A ",
        "A a ",
        "a\n",
        "1 ",
        "a-",
        "a.",
        "a_",
        "a@",
        "a'",
        "a/",
        "a:",
        "a,",
        "aB",
        "aB ",
        "A1",
        "1,",
        "1.",
        "1a",
    ),
    *(
        ". ",
        " .",
        "a. ",
        "A. ",
        "A b. ",
        "etc. ",
        "1. ",
        "- ",
        "| ",
        "* ",
        "# ",
        "> ",
        "\n ",
        "\n\n",
        "\r\n",
        " \n",
        "a\n\n",
    ),
    *(
        "- a\n",
        "1. a\n",
        "| a |\n",
        "a: 1\n",
        "a,b\n",
        "<a",
        "</",
        "<a>",
        "<a ",
        "<!--",
        "{{",
        "{%",
        "[[",
        "((",
        "[1",
        "[1]",
    ),
    *(
        "[1] ",
        "a [1]. ",
        "](",
        "[a](",
        "()",
        "[]",
        "{}",
        "<>",
        "' ",
        '" ',
        '"a',
        '"a" ',
        "*_",
        "*a",
        "**a",
        "``` ",
        "`a` ",
    ),
    *(
        "://",
        "http://a ",
        "www.",
        "www.a ",
        "a@a.",
        "a@a.aa ",
        "a.a/",
        "=a ",
        ": a",
        "&a;",
        "&amp;",
        "#a",
        "\\a",
        "a OR ",
    ),
    *("-a ", "not ", "\u3010", "\u30101\u2020", "1,000,", "\u4e2d\u3002", "a\u0301", "the ", "Q? ", "/a", "../", "a::"),
)
BEGINNINGS: Final = ("", "\n", "a", "(")
ENDS: Final = ("", "!", "\n", "x", "1")


class Text(NamedTuple):
    """A hostile text of any length: a unit again and again, with something before and behind it."""

    unit: str
    beginning: str = ""
    end: str = ""

    def of(self, length: int) -> str:
        return self.beginning + self.unit * (length // len(self.unit)) + self.end


class TooSlowError(Exception):
    """A call took more processor time than it may."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise TooSlowError in the block once it has taken so much processor time.

    A call into C that looks at no signals is stopped at its end.
    """

    def stop(*_: object) -> None:
        raise TooSlowError

    previous = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, previous)


def fault(work: Callable[[str], object], text: Text, *, max_growth: float = MAX_GROWTH) -> str:
    """Return how the time for a text grows where that is more than in a straight line; else nothing.

    Small lengths are tried first, so that what grows fast costs little; the great ones follow where they look
    suspicious.
    """
    try:
        if not _growth(work, text, TINY, SHORT, _SUSPECT_GROWTH * SHORT / TINY):
            return ""
    except TooSlowError:
        return f"{text} took too long"
    return fault_between(work, text, max_growth=max_growth)


def fault_between(
    work: Callable[[str], object],
    text: Text,
    *,
    shorter: int = LONG,
    longer: int = LONGEST,
    max_growth: float = MAX_GROWTH,
) -> str:
    """Return the same for two great lengths, without a look at small ones."""
    try:
        growth = _growth(work, text, shorter, longer, max_growth / 10 * longer / shorter)
    except TooSlowError:
        return f"{text} took too long"
    return f"{text} {growth:.0f} times" if growth else ""


def faults(
    work: Callable[[str], object], texts: Iterable[Text], look: Callable[..., str] = fault, *, limit: int = 3
) -> list[str]:
    """Return the first faults of some texts."""
    return list(islice(filter(None, (look(work, text) for text in texts)), limit))


def _growth(work: Callable[[str], object], text: Text, shorter: int, longer: int, allowed: float) -> float:
    """Return the growth from one length to another where several measurements agree that it is too much, else 0."""
    fast = slow = inf
    for repeats in (1, _REPEATS, _REPEATS):
        fast = min(fast, _seconds(work, text, shorter, repeats, _LIMIT_SECONDS))
        slow = min(slow, _seconds(work, text, longer, repeats, _LIMIT_SECONDS + 3 * allowed * fast))
        if slow < _FAST_SECONDS.get(longer, _FAST_SECONDS[LONGEST]) or slow < allowed * fast:
            return 0.0
    return slow / fast


def _seconds(work: Callable[[str], object], text: Text, length: int, repeats: int, limit: float) -> float:
    """Return the least processor time of several calls."""
    best, written = inf, text.of(length)
    for _ in range(repeats):
        with limited(limit), _without_collector():
            started = time.thread_time()
            work(written)
            best = min(best, time.thread_time() - started)
    return best


@contextmanager
def _without_collector() -> Iterator[None]:
    """Keep the garbage collector, which looks at more objects the more there are, out of the block."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
