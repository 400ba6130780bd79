"""The parsers of this process: a child process per thread that parses, kept from sync to sync."""

import atexit
import threading
from typing import Final

from django.conf import settings

from retrieval.ingest.parse.limited import LimitedParser, ParseLimits
from retrieval.ingest.types import ParsedDocument, RawDocument

_PARSERS: Final = threading.local()


def parse_limited(raw: RawDocument) -> ParsedDocument:
    """Return a source item's document, parsed in a process of its own within the installation's limits.

    Raises IngestError as the parsers do, and for a file that takes too long or too much memory; ParserStartError.
    """
    return _parser().parse(raw)


def _parser() -> LimitedParser:
    """Return the thread's parser; its child ends with this process."""
    limits = ParseLimits(seconds=settings.CORECUBE_PARSE_SECONDS, mebibytes=settings.CORECUBE_PARSE_MEBIBYTES)
    kept: tuple[ParseLimits, LimitedParser] | None = getattr(_PARSERS, "kept", None)
    if kept and kept[0] == limits:
        return kept[1]
    if kept:
        kept[1].close()
    parser = LimitedParser(limits)
    atexit.register(parser.close)
    _PARSERS.kept = (limits, parser)
    return parser
