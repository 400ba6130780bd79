"""Which parser reads a source item: by its name, then its MIME type, then its first bytes."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath
from typing import Final

from retrieval.errors import IngestError
from retrieval.ingest.parse.code import parse_code
from retrieval.ingest.parse.code_languages import CODE_NAMES, LANGUAGES, PLAIN_LANGUAGES
from retrieval.ingest.parse.containers import COMPOUND_START, ZIP_START, kind_of_compound, kind_of_zip
from retrieval.ingest.parse.decoding import charset_of, in_utf8, looks_binary
from retrieval.ingest.parse.delimited import parse_delimited
from retrieval.ingest.parse.docx import parse_docx
from retrieval.ingest.parse.eml import parse_eml
from retrieval.ingest.parse.epub import parse_epub
from retrieval.ingest.parse.html import parse_html
from retrieval.ingest.parse.ipynb import parse_notebook
from retrieval.ingest.parse.json_records import parse_json, parse_ndjson
from retrieval.ingest.parse.mail import refuse_attached
from retrieval.ingest.parse.markdown import parse_markdown
from retrieval.ingest.parse.msg import parse_msg
from retrieval.ingest.parse.odp import parse_odp
from retrieval.ingest.parse.ods import parse_ods
from retrieval.ingest.parse.odt import parse_odt
from retrieval.ingest.parse.pdf import parse_pdf
from retrieval.ingest.parse.pptx import parse_pptx
from retrieval.ingest.parse.refusals import refusal
from retrieval.ingest.parse.rst import parse_rst
from retrieval.ingest.parse.rtf import parse_rtf
from retrieval.ingest.parse.text import parse_text
from retrieval.ingest.parse.xls import parse_xls
from retrieval.ingest.parse.xlsx import parse_xlsx
from retrieval.ingest.parse.xml_document import parse_xml
from retrieval.text.document import ParsedDocument, Parser, RawDocument

_MEBIBYTE: Final = 1024 * 1024
_OFFICE: Final = "application/vnd.openxmlformats-officedocument."
_WORD_TYPE: Final = f"{_OFFICE}wordprocessingml.document"
_SHEET_TYPE: Final = f"{_OFFICE}spreadsheetml.sheet"
_SLIDES_TYPE: Final = f"{_OFFICE}presentationml.presentation"
_SNIFFED_BYTES: Final = 1024
_XML_STARTS: Final = (b"<?xml", b"<rss", b"<feed", b"<rdf:rdf")
_HTML_STARTS: Final = (b"<!doctype html", b"<html")
#: Formats made of characters that are nevertheless no text for a reader.
_MARKUP_STARTS: Final = (b"%!ps", b"<svg")
_RTF_START: Final = b"{\\rtf"


@dataclass(frozen=True, slots=True)
class Format:
    """One format that can be read."""

    parse: Parser
    #: A larger item is refused before it is read.
    max_bytes: int
    suffixes: frozenset[str]
    media_types: frozenset[str]
    #: Whole names in small letters, for files without a suffix or with one that says something else.
    names: frozenset[str] = frozenset()


MARKDOWN: Final = Format(
    parse=parse_markdown,
    max_bytes=16 * _MEBIBYTE,
    suffixes=frozenset({".md", ".markdown", ".mdown", ".mkd", ".mdx"}),
    media_types=frozenset({"text/markdown", "text/x-markdown"}),
)
HTML: Final = Format(
    parse=parse_html,
    max_bytes=16 * _MEBIBYTE,
    suffixes=frozenset({".html", ".htm", ".xhtml"}),
    media_types=frozenset({"text/html", "application/xhtml+xml"}),
)
PDF: Final = Format(
    parse=parse_pdf,
    max_bytes=128 * _MEBIBYTE,
    suffixes=frozenset({".pdf"}),
    media_types=frozenset({"application/pdf"}),
)
DOCX: Final = Format(
    parse=parse_docx,
    max_bytes=128 * _MEBIBYTE,
    suffixes=frozenset({".docx", ".docm"}),
    media_types=frozenset({_WORD_TYPE}),
)
CODE: Final = Format(
    parse=parse_code,
    max_bytes=16 * _MEBIBYTE,
    suffixes=frozenset({*LANGUAGES, *PLAIN_LANGUAGES}),
    media_types=frozenset({"text/x-python", "text/javascript", "application/javascript", "application/yaml"}),
    names=CODE_NAMES,
)
JSON: Final = Format(
    parse=parse_json,
    max_bytes=16 * _MEBIBYTE,
    suffixes=frozenset({".json", ".geojson", ".jsonld", ".webmanifest"}),
    media_types=frozenset({"application/json", "application/ld+json", "application/geo+json"}),
)
NDJSON: Final = Format(
    parse=parse_ndjson,
    max_bytes=64 * _MEBIBYTE,
    suffixes=frozenset({".ndjson", ".jsonl"}),
    media_types=frozenset({"application/x-ndjson", "application/jsonl"}),
)
NOTEBOOK: Final = Format(
    parse=parse_notebook,
    max_bytes=64 * _MEBIBYTE,
    suffixes=frozenset({".ipynb"}),
    media_types=frozenset({"application/x-ipynb+json"}),
)
RST: Final = Format(
    parse=parse_rst,
    # docutils reads some 25 KB a second.
    max_bytes=_MEBIBYTE,
    suffixes=frozenset({".rst", ".rest"}),
    media_types=frozenset({"text/x-rst", "text/prs.fallenstein.rst"}),
)
XML: Final = Format(
    parse=parse_xml,
    max_bytes=16 * _MEBIBYTE,
    suffixes=frozenset({".xml", ".rss", ".atom", ".rdf"}),
    media_types=frozenset({"application/xml", "text/xml", "application/rss+xml", "application/atom+xml"}),
)
XLSX: Final = Format(
    parse=parse_xlsx,
    max_bytes=128 * _MEBIBYTE,
    suffixes=frozenset({".xlsx", ".xlsm", ".xltx", ".xltm"}),
    media_types=frozenset({_SHEET_TYPE, "application/vnd.ms-excel.sheet.macroenabled.12"}),
)
XLS: Final = Format(
    parse=parse_xls,
    max_bytes=64 * _MEBIBYTE,
    suffixes=frozenset({".xls", ".xlt"}),
    media_types=frozenset({"application/vnd.ms-excel"}),
)
ODS: Final = Format(
    parse=parse_ods,
    max_bytes=128 * _MEBIBYTE,
    suffixes=frozenset({".ods", ".ots"}),
    media_types=frozenset({"application/vnd.oasis.opendocument.spreadsheet"}),
)
ODT: Final = Format(
    parse=parse_odt,
    max_bytes=128 * _MEBIBYTE,
    suffixes=frozenset({".odt", ".ott"}),
    media_types=frozenset({"application/vnd.oasis.opendocument.text"}),
)
ODP: Final = Format(
    parse=parse_odp,
    max_bytes=128 * _MEBIBYTE,
    suffixes=frozenset({".odp", ".otp"}),
    media_types=frozenset({"application/vnd.oasis.opendocument.presentation"}),
)
DELIMITED: Final = Format(
    parse=parse_delimited,
    max_bytes=64 * _MEBIBYTE,
    suffixes=frozenset({".csv", ".tsv", ".tab"}),
    media_types=frozenset({"text/csv", "application/csv", "text/tab-separated-values"}),
)
PPTX: Final = Format(
    parse=parse_pptx,
    max_bytes=128 * _MEBIBYTE,
    suffixes=frozenset({".pptx", ".pptm", ".ppsx", ".potx"}),
    media_types=frozenset({_SLIDES_TYPE}),
)
EPUB: Final = Format(
    parse=parse_epub,
    max_bytes=128 * _MEBIBYTE,
    suffixes=frozenset({".epub"}),
    media_types=frozenset({"application/epub+zip"}),
)
RTF: Final = Format(
    parse=parse_rtf,
    max_bytes=16 * _MEBIBYTE,
    suffixes=frozenset({".rtf"}),
    media_types=frozenset({"application/rtf", "text/rtf"}),
)


def _read_attached(raw: RawDocument) -> ParsedDocument:
    """Return the document of a file that is attached to a mail; an attached mail without its own attachments.

    Raises IngestError, and nothing else: a mail is worth reading whatever is attached to it.
    """
    found = format_of(raw)
    if len(raw.content) > found.max_bytes:
        raise IngestError("too_large", "The attached file is too large.")
    try:
        return _ATTACHED_MAIL.get(found, found.parse)(raw)
    except IngestError:
        raise
    except Exception as error:
        raise IngestError("corrupt", "The attached file is damaged and cannot be read.") from error


EML: Final = Format(
    parse=partial(parse_eml, read_attached=_read_attached),
    max_bytes=64 * _MEBIBYTE,
    suffixes=frozenset({".eml"}),
    media_types=frozenset({"message/rfc822"}),
)
MSG: Final = Format(
    parse=partial(parse_msg, read_attached=_read_attached),
    max_bytes=64 * _MEBIBYTE,
    suffixes=frozenset({".msg"}),
    media_types=frozenset({"application/vnd.ms-outlook"}),
)
_ATTACHED_MAIL: Final[Mapping[Format, Parser]] = {
    EML: partial(parse_eml, read_attached=refuse_attached),
    MSG: partial(parse_msg, read_attached=refuse_attached),
}
_CONTAINED: Final[Mapping[str, Format]] = {
    "docx": DOCX,
    "xlsx": XLSX,
    "pptx": PPTX,
    "epub": EPUB,
    "ods": ODS,
    "odt": ODT,
    "odp": ODP,
    "xls": XLS,
    "msg": MSG,
}
TEXT: Final = Format(
    parse=parse_text,
    max_bytes=16 * _MEBIBYTE,
    suffixes=frozenset({".txt", ".text", ".log"}),
    media_types=frozenset({"text/plain"}),
)
FORMATS: Final = (
    CODE,
    JSON,
    NDJSON,
    NOTEBOOK,
    RST,
    XML,
    MARKDOWN,
    HTML,
    PDF,
    *_CONTAINED.values(),
    DELIMITED,
    EML,
    RTF,
    TEXT,
)


def format_of(raw: RawDocument) -> Format:
    """Return the format of a source item.

    Raises IngestError: `unsupported_type` for binary content of no known format, `encrypted` for
    an Office file with a password, whatever its name.
    """
    if raw.content.startswith(COMPOUND_START):
        return _CONTAINED[kind_of_compound(raw.content)]
    found = _by_suffix(raw.name) or _by_media_type(raw.media_type)
    if found is XLS:
        # Programs write web pages and delimited text under the name of an old workbook.
        found = _by_content(raw)
        return DELIMITED if found is TEXT else found
    return found or _by_content(raw)


def _by_suffix(name: str) -> Format | None:
    path = PurePosixPath(name.replace("\\", "/").lower())
    return next((known for known in FORMATS if path.suffix in known.suffixes or path.name in known.names), None)


def _by_media_type(media_type: str) -> Format | None:
    """Return the format of a MIME type; plain text is what servers say when they do not know."""
    essence = media_type.partition(";")[0].strip().lower()
    return next((known for known in FORMATS if essence in known.media_types and known is not TEXT), None)


def _by_content(raw: RawDocument) -> Format:
    charset = charset_of(raw.media_type)
    start = in_utf8(raw.content[:_SNIFFED_BYTES], charset).lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if b"%pdf-" in start:
        return PDF
    if raw.content.startswith(ZIP_START):
        return _CONTAINED[kind_of_zip(raw.content)]
    if start.startswith(_RTF_START):
        return RTF
    if looks_binary(raw.content, charset) or start.startswith(_MARKUP_STARTS):
        raise refusal(raw)
    if _is_html(start):
        return HTML
    return XML if start.startswith(_XML_STARTS) else TEXT


def _is_html(start: bytes) -> bool:
    return start.startswith(_HTML_STARTS) or (start.startswith(b"<?xml") and b"<html" in start)
