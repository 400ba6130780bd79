"""XML read as a stream of events, in memory that does not grow with the file, and without entities."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import IO, Final
from xml.parsers import expat

from retrieval.errors import IngestError

#: Office formats nest some twenty elements; a reader of events needs no more.
_MAX_DEPTH: Final = 256


def _ignore(_: str) -> None:
    """Do nothing with what is not asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Handlers:
    """What is called while a stream is read; names come without their namespace prefix."""

    start: Callable[[str, Mapping[str, str]], None]
    end: Callable[[str], None] = _ignore
    text: Callable[[str], None] = _ignore


def read_events(stream: IO[bytes], handlers: Handlers) -> None:
    """Call the handlers for everything in the stream, in order.

    Raises IngestError `corrupt` for what is no XML, for a document type (no format read here has
    one, and entities need one) and for elements nested out of all proportion.
    """
    parser = expat.ParserCreate()
    parser.buffer_text = True
    depth = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _MAX_DEPTH:
            raise IngestError("corrupt", "The file nests its elements too deeply.")
        handlers.start(name.rpartition(":")[2], attributes)

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        handlers.end(name.rpartition(":")[2])

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = handlers.text
    parser.StartDoctypeDeclHandler = _refuse_doctype
    try:
        parser.ParseFile(stream)
    except expat.ExpatError as error:
        raise IngestError("corrupt", "The file holds damaged XML.") from error


def _refuse_doctype(*_: object) -> None:
    raise IngestError("corrupt", "The file declares a document type, which its format forbids.")
