"""Books (epub): the chapters in reading order."""

import posixpath
import zipfile
from collections.abc import Iterator, Mapping
from io import BytesIO
from typing import Final
from urllib.parse import unquote

from retrieval.errors import IngestError
from retrieval.ingest.parse.containers import checked_names
from retrieval.ingest.parse.finish import finished, lowered
from retrieval.ingest.parse.html import blocks_of_page
from retrieval.ingest.parse.xml_reading import EventReader, facts_in, read_events
from retrieval.text.document import Block, ParsedDocument, RawDocument

_CONTAINER: Final = "META-INF/container.xml"
_RIGHTS: Final = "META-INF/encryption.xml"
_LOCKED: Final = b"xmlenc#aes"  #: The mark of an encrypted chapter; free books may have obfuscated fonts.
_MAX_CHAPTERS: Final = 5000


def parse_epub(raw: RawDocument) -> ParsedDocument:
    """Return a book's chapters. Raises IngestError: `encrypted` (copy protection), `too_large`, `corrupt`, `empty`."""
    names = checked_names(raw.content)
    if _CONTAINER not in names:
        raise IngestError("corrupt", "The file is not an EPUB book.")
    with zipfile.ZipFile(BytesIO(raw.content)) as archive:
        if _RIGHTS in names and _LOCKED in archive.read(_RIGHTS):
            raise IngestError("encrypted", "The book is protected against copying.")
        package = _Package()
        with archive.open(_CONTAINER) as stream:
            read_events(stream, package)
        if not package.part:
            raise IngestError("corrupt", "The book does not list its parts.")
        with archive.open(package.part) as stream:
            read_events(stream, package)
        with archive.open(package.part) as stream:
            facts = facts_in(stream)
        blocks = [block for part in package.chapters() if part in names for block in _chapter(archive.read(part))]
    title = facts.pop("title", "")
    return finished(raw, source_type="epub", blocks=blocks, metadata=facts, explicit_title=title)


class _Package(EventReader):
    def __init__(self) -> None:
        self.part = ""
        self._pages: dict[str, str] = {}
        self._contents: set[str] = set()
        self._spine: list[str] = []

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "rootfile" and not self.part:
            self.part = attributes.get("full-path", "")
        elif name == "item" and attributes.get("media-type") in {"application/xhtml+xml", "text/html"}:
            identity = attributes.get("id", "")
            folder = posixpath.dirname(self.part)
            self._pages[identity] = posixpath.normpath(posixpath.join(folder, unquote(attributes.get("href", ""))))
            if "nav" in attributes.get("properties", "").split():
                self._contents.add(identity)
        elif name == "itemref" and len(self._spine) < _MAX_CHAPTERS:
            self._spine.append(attributes.get("idref", ""))

    def chapters(self) -> list[str]:
        order = dict.fromkeys(self._spine)
        return [self._pages[identity] for identity in order if identity in self._pages.keys() - self._contents]


def _chapter(content: bytes) -> Iterator[Block]:
    if not content.strip():
        return
    try:
        blocks = blocks_of_page(content)
    except IngestError as error:
        if error.reason == "empty":
            return
        raise
    yield from (lowered(block, 1) for block in blocks)
