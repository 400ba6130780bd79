"""Safe reading of XML, as a stream of events or as a tree: no entities, nothing fetched, limited depth."""

import re
from collections.abc import Mapping
from typing import IO, Final
from xml.parsers import expat

from lxml import etree

from retrieval.errors import IngestError
from retrieval.ingest.parse.decoding import in_utf8, looks_binary

_MAX_DEPTH: Final = 256  #: Office formats nest about twenty elements.
_ENTITY_DECLARATION: Final = re.compile(rb"<!ENTITY\b|<\0!\0E\0N\0T|\0<\0!\0E\0N\0T")
_XML_DECLARATION: Final = re.compile(rb"\A\s*<\?xml\b[^>]{0,200}\?>")
_WIDE_DECLARATION: Final = re.compile(
    rb"\A\s*<\?xml\b[^>]{0,200}\bencoding\s*=\s*[\"'](?:utf|ucs)-?(?:16|32|2|4)\b[^>]{0,200}\?>", re.IGNORECASE
)
#: Metadata keys by element name, in Dublin Core, Office and OpenDocument.
_FACTS: Final = {
    **{name: name for name in ("title", "publisher", "subject", "keywords", "language", "created", "date")},
    **{name: name for name in ("modified", "identifier")},
    "creator": "author",
    "initial-creator": "author",
    "keyword": "keywords",
    "creation-date": "created",
}
_DATES: Final = frozenset({"created", "modified", "date"})
_MAX_LENGTH: Final = 500
_ISO_DATE_LENGTH: Final = len("2024-03-31")


class EventReader:
    """Ignores the events of a stream; what reads some overrides these. Names have no namespace prefix."""

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Read the start of an element."""

    def end(self, name: str) -> None:
        """Read the end of an element."""

    def text(self, text: str) -> None:
        """Read text."""


def read_events(stream: IO[bytes], reader: EventReader) -> None:
    """Give the reader everything in the stream, in order.

    Raises IngestError `corrupt` for content that is not XML, for a document type (no format here has one, and entities
    need one) and for elements nested too deeply.
    """
    parser = expat.ParserCreate()
    parser.buffer_text = True
    depth = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _MAX_DEPTH:
            raise IngestError("corrupt", "The XML elements are nested too deeply.")
        reader.start(name.rpartition(":")[2], attributes)

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        reader.end(name.rpartition(":")[2])

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = reader.text
    parser.StartDoctypeDeclHandler = _refuse_doctype
    try:
        parser.ParseFile(stream)
    except expat.ExpatError as error:
        raise IngestError("corrupt", "The file contains damaged XML.") from error


def _refuse_doctype(*_: object) -> None:
    raise IngestError("corrupt", "The file declares a document type, which its format does not allow.")


def tree_of(content: bytes) -> etree._Element:
    """Return the root of an XML document; damage is ignored if possible.

    Raises IngestError: `corrupt` for an unreadable document and one that declares entities (a few lines of those can
    expand to terabytes), `unsupported_type` for a binary file.
    """
    if looks_binary(content):
        raise IngestError("unsupported_type", "The file is binary, not text.")
    written = in_utf8(content)
    # The declared encoding is wrong after the conversion to UTF-8, and a file without NULs is not in UTF-16.
    content = (_WIDE_DECLARATION if written is content else _XML_DECLARATION).sub(b"", written)
    if _ENTITY_DECLARATION.search(content):
        raise IngestError("corrupt", "The file declares XML entities, which are not supported.")
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
    """Return an element's name without its namespace; empty for other nodes."""
    return etree.QName(element).localname if isinstance(element.tag, str) else ""


def local(element: etree._Element) -> str:
    """Return an element's name in lower case."""
    return name_of(element).lower()


class _Facts(EventReader):
    def __init__(self) -> None:
        self.found: dict[str, str] = {}
        self._key = ""
        self._parts: list[str] = []

    def start(self, name: str, attributes: Mapping[str, str]) -> None:  # noqa: ARG002 -- the reader's signature
        self._key = _FACTS.get(name, "")
        self._parts = []

    def text(self, text: str) -> None:
        if self._key and sum(map(len, self._parts)) < _MAX_LENGTH:
            self._parts.append(text)

    def end(self, name: str) -> None:  # noqa: ARG002 -- the reader's signature
        value = "".join(self._parts).strip()
        if self._key and value:
            self.found.setdefault(self._key, value[:_ISO_DATE_LENGTH] if self._key in _DATES else value)
        self._key = ""


def facts_in(stream: IO[bytes]) -> dict[str, str]:
    """Return the metadata in a properties part, the first value of each key; dates as ISO days."""
    facts = _Facts()
    read_events(stream, facts)
    return facts.found
