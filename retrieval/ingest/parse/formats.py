"""Which parser reads a source item: by its name, then its MIME type, then its first bytes."""

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from retrieval.errors import IngestError
from retrieval.ingest.parse.archive import checked_names
from retrieval.ingest.parse.decoding import looks_binary
from retrieval.ingest.parse.docx import parse_docx
from retrieval.ingest.parse.html import parse_html
from retrieval.ingest.parse.markdown import parse_markdown
from retrieval.ingest.parse.pdf import parse_pdf
from retrieval.ingest.parse.text import parse_text
from retrieval.ingest.types import Parser, RawDocument

_MEBIBYTE: Final = 1024 * 1024
_WORD_TYPE: Final = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_SNIFFED_BYTES: Final = 1024
#: The container of old Office files, and of new ones that have a password.
_COMPOUND_FILE: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED_PACKAGE: Final = "EncryptedPackage".encode("utf-16-le")
_HTML_STARTS: Final = (b"<!doctype html", b"<html")
#: Formats made of characters that are nevertheless no text for a reader.
_MARKUP_STARTS: Final = (b"{\\rtf", b"%!ps", b"<svg")


@dataclass(frozen=True, slots=True)
class Format:
    """One format that can be read."""

    parse: Parser
    #: A larger item is refused before it is read.
    most_bytes: int
    suffixes: frozenset[str]
    media_types: frozenset[str]


MARKDOWN: Final = Format(
    parse=parse_markdown,
    most_bytes=16 * _MEBIBYTE,
    suffixes=frozenset({".md", ".markdown", ".mdown", ".mkd", ".mdx"}),
    media_types=frozenset({"text/markdown", "text/x-markdown"}),
)
HTML: Final = Format(
    parse=parse_html,
    most_bytes=16 * _MEBIBYTE,
    suffixes=frozenset({".html", ".htm", ".xhtml"}),
    media_types=frozenset({"text/html", "application/xhtml+xml"}),
)
PDF: Final = Format(
    parse=parse_pdf,
    most_bytes=128 * _MEBIBYTE,
    suffixes=frozenset({".pdf"}),
    media_types=frozenset({"application/pdf"}),
)
DOCX: Final = Format(
    parse=parse_docx,
    most_bytes=128 * _MEBIBYTE,
    suffixes=frozenset({".docx", ".docm"}),
    media_types=frozenset({_WORD_TYPE}),
)
TEXT: Final = Format(
    parse=parse_text,
    most_bytes=16 * _MEBIBYTE,
    suffixes=frozenset({".txt", ".text", ".log"}),
    media_types=frozenset({"text/plain"}),
)
FORMATS: Final = (MARKDOWN, HTML, PDF, DOCX, TEXT)


def format_of(raw: RawDocument) -> Format:
    """Return the format of a source item.

    Raises IngestError: `unsupported_type` for binary content of no known format, `encrypted` for
    an Office file with a password, whatever its name.
    """
    _refuse_compound_file(raw.content)
    return _by_suffix(raw.name) or _by_media_type(raw.media_type) or _by_content(raw.content)


def _by_suffix(name: str) -> Format | None:
    suffix = PurePosixPath(name.replace("\\", "/")).suffix.lower()
    return next((known for known in FORMATS if suffix in known.suffixes), None)


def _by_media_type(media_type: str) -> Format | None:
    """Return the format of a MIME type; plain text is what servers say when they do not know."""
    essence = media_type.partition(";")[0].strip().lower()
    return next((known for known in FORMATS if essence in known.media_types and known is not TEXT), None)


def _by_content(content: bytes) -> Format:
    start = content[:_SNIFFED_BYTES].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if b"%pdf-" in start:
        return PDF
    if start.startswith(b"pk\x03\x04") and "word/document.xml" in checked_names(content):
        return DOCX
    if looks_binary(content) or start.startswith(_MARKUP_STARTS):
        raise IngestError("unsupported_type", "Files of this type cannot be read.")
    return HTML if _is_html(start) else TEXT


def _is_html(start: bytes) -> bool:
    return start.startswith(_HTML_STARTS) or (start.startswith(b"<?xml") and b"<html" in start)


def _refuse_compound_file(content: bytes) -> None:
    if content.startswith(_COMPOUND_FILE):
        if _ENCRYPTED_PACKAGE in content:
            raise IngestError("encrypted", "The file is protected by a password.")
        raise IngestError("unsupported_type", "The file is in an old Office format that cannot be read.")
