"""Safe reading of XML, as a stream of events or as a tree: no entities, nothing fetched, limited depth."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import IO, Final
from xml.parsers import expat

from lxml import etree

from retrieval.errors import IngestError
from retrieval.ingest.parse.decoding import in_utf8, looks_binary

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


_ENTITY_DECLARATION: Final = re.compile(rb"<!ENTITY\b|<\0!\0E\0N\0T|\0<\0!\0E\0N\0T")
_XML_DECLARATION: Final = re.compile(rb"\A\s*<\?xml\b[^>]{0,200}\?>")
_WIDE_DECLARATION: Final = re.compile(
    rb"\A\s*<\?xml\b[^>]{0,200}\bencoding\s*=\s*[\"'](?:utf|ucs)-?(?:16|32|2|4)\b[^>]{0,200}\?>", re.IGNORECASE
)


def tree_of(content: bytes) -> etree._Element:
    """Return the root of an XML document; damage is passed over where it can be.

    Raises IngestError: `corrupt` when there is nothing to read and for a document that declares entities of
    its own (a few lines of those can stand for terabytes), `unsupported_type` when it is binary.
    """
    if looks_binary(content):
        raise IngestError("unsupported_type", "The file is binary, not text.")
    written = in_utf8(content)
    # What a file declares is wrong once it is UTF-8, and a file without NULs is not in UTF-16.
    content = (_WIDE_DECLARATION if written is content else _XML_DECLARATION).sub(b"", written)
    if _ENTITY_DECLARATION.search(content):
        raise IngestError("corrupt", "The file declares XML entities, which are not read.")
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, recover=True, remove_comments=True
    )
    try:
        root = etree.fromstring(content, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise IngestError("corrupt", "The file is damaged and cannot be read.") from error
    if root is None:
        raise IngestError("corrupt", "The file is damaged and cannot be read.")
    return root


def name_of(element: etree._Element) -> str:
    """Return an element's name without its namespace; empty for what is no element."""
    return etree.QName(element).localname if isinstance(element.tag, str) else ""


def local(element: etree._Element) -> str:
    """Return an element's name in small letters, for comparing."""
    return name_of(element).lower()


#: Dublin Core and what Office and OpenDocument put beside it, by element name.
_FACTS: Final = {
    "title": "title",
    "creator": "author",
    "initial-creator": "author",
    "publisher": "publisher",
    "subject": "subject",
    "keywords": "keywords",
    "keyword": "keywords",
    "language": "language",
    "created": "created",
    "creation-date": "created",
    "date": "date",
    "modified": "modified",
    "identifier": "identifier",
}
_DATES: Final = frozenset({"created", "modified", "date"})
_MAX_LENGTH: Final = 500
_ISO_DATE_LENGTH: Final = len("2024-03-31")


class _Facts:
    def __init__(self) -> None:
        self.found: dict[str, str] = {}
        self._key = ""
        self._parts: list[str] = []

    def start(self, name: str, _: Mapping[str, str]) -> None:
        self._key = _FACTS.get(name, "")
        self._parts = []

    def text(self, text: str) -> None:
        if self._key and sum(map(len, self._parts)) < _MAX_LENGTH:
            self._parts.append(text)

    def end(self, _: str) -> None:
        value = "".join(self._parts).strip()
        if self._key and value:
            self.found.setdefault(self._key, value[:_ISO_DATE_LENGTH] if self._key in _DATES else value)
        self._key = ""


def facts_in(stream: IO[bytes]) -> dict[str, str]:
    """Return the facts of a properties part by their usual names, the first of each; dates as ISO days."""
    facts = _Facts()
    read_events(stream, Handlers(start=facts.start, end=facts.end, text=facts.text))
    return facts.found
