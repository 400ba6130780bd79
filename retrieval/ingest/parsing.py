"""A pool of limited child processes: each prepares one item at a time, and a few idle ones are reused."""

import atexit
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.conf import settings

from retrieval.ingest.preparation import Preparation, PreparedText
from retrieval.ingest.sandbox.frames import allowed_seconds
from retrieval.ingest.sandbox.process import START_SECONDS, LimitedParser, ParseLimits
from retrieval.text.document import RawDocument

_MAX_IDLE: Final = 2  #: Idle children; each uses about 100 MB.


class Children:
    """A pool of limited parsers for the threads of a process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[tuple[ParseLimits, LimitedParser]] = []
        self._busy: dict[int, LimitedParser] = {}

    @contextmanager
    def parser(self, limits: ParseLimits) -> Iterator[LimitedParser]:
        """Yield a parser with these limits for this thread alone."""
        with self._lock:
            fitting = [it for it in self._idle if it[0] == limits]
            if fitting:
                self._idle.remove(fitting[-1])
            parser = fitting[-1][1] if fitting else LimitedParser(limits)
            self._busy[threading.get_ident()] = parser
        try:
            yield parser
        finally:
            with self._lock:
                self._busy.pop(threading.get_ident(), None)
                self._idle.append((limits, parser))
                # Parsers with other limits than the current ones are not used again.
                idle = [it for it in self._idle if it[0] == limits and not it[1].is_interrupted][-_MAX_IDLE:]
                surplus = [it for it in self._idle if it not in idle]
                self._idle = idle
            for _, other in surplus:
                other.close()

    def interrupt(self, thread: int) -> None:
        """Kill the child that works for a thread, if there is one."""
        with self._lock:
            parser = self._busy.get(thread)
        if parser:
            parser.interrupt()

    def kill(self) -> None:
        """Kill every child, before the process ends at once."""
        with self._lock:
            parsers = [*self._busy.values(), *(parser for _, parser in self._idle)]
        for parser in parsers:
            parser.interrupt()

    def close(self) -> None:
        """End the idle children."""
        with self._lock:
            idle, self._idle = self._idle, []
        for _, parser in idle:
            parser.close()


children: Final = Children()
atexit.register(children.close)


def prepare_limited(raw: RawDocument, how: Preparation, *, seconds: float | None = None) -> PreparedText:
    """Prepare a source item in a separate process within the installation's limits.

    `seconds` replaces CORECUBE_PARSE_SECONDS. Raises IngestError as `prepare_raw` does, and for an item that takes too
    long or too much memory; ParserStartError; InterruptedPreparationError.
    """
    limits = ParseLimits(seconds=settings.CORECUBE_PARSE_SECONDS, mebibytes=settings.CORECUBE_PARSE_MEBIBYTES)
    with children.parser(limits) as parser:
        return parser.prepare(raw, how, seconds=seconds)


def max_seconds(size: int) -> float:
    """Return the maximum time for preparing an item of `size` bytes, including a second try in a new child."""
    return 2 * (allowed_seconds(settings.CORECUBE_PARSE_SECONDS, size) + START_SECONDS)
