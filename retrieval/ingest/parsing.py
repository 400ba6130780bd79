"""The limited children of this process: each prepares one item at a time, and a few wait for the next one."""

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

#: Children that wait for an item; each holds some 100 MB.
_MAX_IDLE: Final = 2


class Children:
    """Lends limited parsers to the threads of a process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[tuple[ParseLimits, LimitedParser]] = []
        #: By thread, what is lent.
        self._lent: dict[int, LimitedParser] = {}

    @contextmanager
    def lent(self, limits: ParseLimits) -> Iterator[LimitedParser]:
        """Yield a parser with these limits for this thread alone."""
        parser = self._taken(limits)
        try:
            yield parser
        finally:
            self._give_back(limits, parser)

    def interrupt(self, thread: int) -> None:
        """Kill the child that works for a thread, if one does."""
        with self._lock:
            parser = self._lent.get(thread)
        if parser:
            parser.interrupt()

    def kill(self) -> None:
        """Kill every child, before the process ends in a hurry."""
        with self._lock:
            parsers = [*self._lent.values(), *(parser for _, parser in self._idle)]
        for parser in parsers:
            parser.interrupt()

    def close(self) -> None:
        """End the children that wait."""
        with self._lock:
            idle, self._idle = self._idle, []
        for _, parser in idle:
            parser.close()

    def _taken(self, limits: ParseLimits) -> LimitedParser:
        with self._lock:
            fitting = [it for it in self._idle if it[0] == limits]
            if fitting:
                self._idle.remove(fitting[-1])
            parser = fitting[-1][1] if fitting else LimitedParser(limits)
            self._lent[threading.get_ident()] = parser
        return parser

    def _give_back(self, limits: ParseLimits, parser: LimitedParser) -> None:
        with self._lock:
            self._lent.pop(threading.get_ident(), None)
            self._idle.append((limits, parser))
            # One with other limits than the last one's is of no use any more.
            kept = [it for it in self._idle if it[0] == limits and not it[1].is_interrupted][-_MAX_IDLE:]
            gone = [it for it in self._idle if it not in kept]
            self._idle = kept
        for _, other in gone:
            other.close()


children: Final = Children()
atexit.register(children.close)


def prepare_limited(raw: RawDocument, how: Preparation, *, seconds: float | None = None) -> PreparedText:
    """Return what becomes of a source item, worked out in a process of its own within the installation's limits.

    `seconds` are allowed in place of CORECUBE_PARSE_SECONDS. Raises IngestError as `prepare_raw` does, and for an item
    that takes too long or too much memory; ParserStartError; InterruptedPreparationError.
    """
    limits = ParseLimits(seconds=settings.CORECUBE_PARSE_SECONDS, mebibytes=settings.CORECUBE_PARSE_MEBIBYTES)
    with children.lent(limits) as parser:
        return parser.prepare(raw, how, seconds=seconds)


def max_seconds(size: int) -> float:
    """Return how long preparing an item of so many bytes may take in all, with a second try in a fresh child."""
    return 2 * (allowed_seconds(settings.CORECUBE_PARSE_SECONDS, size) + START_SECONDS)
