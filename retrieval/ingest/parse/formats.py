"""The formats that can be read, and the format of a source item: by its name, MIME type or first bytes."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import PurePosixPath
from typing import Final

from retrieval.errors import IngestError
from retrieval.ingest.parse.code import parse_code
from retrieval.ingest.parse.code_languages import CODE_NAMES, LANGUAGES, PLAIN_LANGUAGES
from retrieval.ingest.parse.containers import COMPOUND_START, ZIP_START, kind_of_compound, kind_of_zip, refusal
from retrieval.ingest.parse.decoding import charset_of, in_utf8, looks_binary
from retrieval.ingest.parse.delimited import parse_delimited
from retrieval.ingest.parse.epub import parse_epub
from retrieval.ingest.parse.html import parse_html
from retrieval.ingest.parse.ipynb import parse_notebook
from retrieval.ingest.parse.json_records import parse_json, parse_ndjson
from retrieval.ingest.parse.mail import parse_eml, parse_msg, refuse_attached
from retrieval.ingest.parse.markdown import parse_markdown
from retrieval.ingest.parse.odp import parse_odp
from retrieval.ingest.parse.ods import parse_ods
from retrieval.ingest.parse.odt import parse_odt
from retrieval.ingest.parse.text import parse_rtf, parse_text
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
_MARKUP_STARTS: Final = (b"%!ps", b"<svg")  #: Formats in plain characters that are not readable text.


@dataclass(frozen=True, slots=True)
class Format:
    """One format that can be read."""

    parse: Parser
    max_bytes: int
    suffixes: frozenset[str]
    media_types: frozenset[str]
    #: Complete names in lower case, for files without a suffix or with a misleading one.
    names: frozenset[str] = frozenset()


def _loaded(module: str) -> Parser:
    """Return a module's parser. Its first file loads the module, because few processes need its large library."""

    def parse(raw: RawDocument) -> ParsedDocument:
        parser: Parser = getattr(import_module(f"retrieval.ingest.parse.{module}"), f"parse_{module}")
        return parser(raw)

    return parse


def _format(parse: Parser, mebibytes: int, suffixes: str, *media_types: str) -> Format:
    return Format(parse, mebibytes * _MEBIBYTE, frozenset(suffixes.split()), frozenset(media_types))


MARKDOWN: Final = _format(parse_markdown, 16, ".md .markdown .mdown .mkd .mdx", "text/markdown", "text/x-markdown")
HTML: Final = _format(parse_html, 16, ".html .htm .xhtml", "text/html", "application/xhtml+xml")
PDF: Final = _format(_loaded("pdf"), 128, ".pdf", "application/pdf")
DOCX: Final = _format(_loaded("docx"), 128, ".docx .docm", _WORD_TYPE)
CODE: Final = Format(
    parse=parse_code,
    max_bytes=16 * _MEBIBYTE,
    suffixes=frozenset({*LANGUAGES, *PLAIN_LANGUAGES}),
    media_types=frozenset({"text/x-python", "text/javascript", "application/javascript", "application/yaml"}),
    names=CODE_NAMES,
)
JSON: Final = _format(
    parse_json,
    16,
    ".json .geojson .jsonld .webmanifest",
    "application/json",
    "application/ld+json",
    "application/geo+json",
)
NDJSON: Final = _format(parse_ndjson, 64, ".ndjson .jsonl", "application/x-ndjson", "application/jsonl")
NOTEBOOK: Final = _format(parse_notebook, 64, ".ipynb", "application/x-ipynb+json")
# docutils reads about 25 KB per second.
RST: Final = _format(_loaded("rst"), 1, ".rst .rest", "text/x-rst", "text/prs.fallenstein.rst")
XML: Final = _format(
    parse_xml, 16, ".xml .rss .atom .rdf", "application/xml", "text/xml", "application/rss+xml", "application/atom+xml"
)
XLSX: Final = _format(
    parse_xlsx, 128, ".xlsx .xlsm .xltx .xltm", _SHEET_TYPE, "application/vnd.ms-excel.sheet.macroenabled.12"
)
XLS: Final = _format(_loaded("xls"), 64, ".xls .xlt", "application/vnd.ms-excel")
ODS: Final = _format(parse_ods, 128, ".ods .ots", "application/vnd.oasis.opendocument.spreadsheet")
ODT: Final = _format(parse_odt, 128, ".odt .ott", "application/vnd.oasis.opendocument.text")
ODP: Final = _format(parse_odp, 128, ".odp .otp", "application/vnd.oasis.opendocument.presentation")
DELIMITED: Final = _format(
    parse_delimited, 64, ".csv .tsv .tab", "text/csv", "application/csv", "text/tab-separated-values"
)
PPTX: Final = _format(_loaded("pptx"), 128, ".pptx .pptm .ppsx .potx", _SLIDES_TYPE)
EPUB: Final = _format(parse_epub, 128, ".epub", "application/epub+zip")
RTF: Final = _format(parse_rtf, 16, ".rtf", "application/rtf", "text/rtf")


def _read_attached(raw: RawDocument) -> ParsedDocument:
    """Return an attached file, a mail without its attachments; raise IngestError only, so that the mail is read."""
    found = format_of(raw)
    if len(raw.content) > found.max_bytes:
        raise IngestError("too_large", "The attached file is too large.")
    try:
        return _ATTACHED_MAIL.get(found, found.parse)(raw)
    except IngestError:
        raise
    except Exception as error:
        raise IngestError("corrupt", "The attached file is damaged and cannot be read.") from error


EML: Final = _format(partial(parse_eml, read_attached=_read_attached), 64, ".eml", "message/rfc822")
MSG: Final = _format(partial(parse_msg, read_attached=_read_attached), 64, ".msg", "application/vnd.ms-outlook")
_ATTACHED_MAIL: Final[Mapping[Format, Parser]] = {
    EML: partial(parse_eml, read_attached=refuse_attached),
    MSG: partial(parse_msg, read_attached=refuse_attached),
}
_CONTAINED: Final[Mapping[str, Format]] = {
    "docx": DOCX, "xlsx": XLSX, "pptx": PPTX, "epub": EPUB, "ods": ODS, "odt": ODT, "odp": ODP, "xls": XLS, "msg": MSG,
}  # fmt: skip
TEXT: Final = _format(parse_text, 16, ".txt .text .log", "text/plain")
FORMATS: Final = (
    CODE, JSON, NDJSON, NOTEBOOK, RST, XML, MARKDOWN, HTML, PDF, *_CONTAINED.values(), DELIMITED, EML, RTF, TEXT,
)  # fmt: skip


def format_of(raw: RawDocument) -> Format:
    """Return a source item's format; raise IngestError: `unsupported_type`, or `encrypted` for an Office password."""
    if raw.content.startswith(COMPOUND_START):
        return _CONTAINED[kind_of_compound(raw.content)]
    path = PurePosixPath(raw.name.replace("\\", "/").lower())
    found = next((known for known in FORMATS if path.suffix in known.suffixes or path.name in known.names), None)
    # Servers send text/plain for unknown types.
    essence = raw.media_type.partition(";")[0].strip().lower()
    found = found or next((known for known in FORMATS if essence in known.media_types and known is not TEXT), None)
    if found is XLS:
        # Programs also use this suffix for web pages and delimited text.
        found = _by_content(raw)
        return DELIMITED if found is TEXT else found
    return found or _by_content(raw)


def _by_content(raw: RawDocument) -> Format:
    charset = charset_of(raw.media_type)
    start = in_utf8(raw.content[:_SNIFFED_BYTES], charset).lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if b"%pdf-" in start:
        return PDF
    if raw.content.startswith(ZIP_START):
        return _CONTAINED[kind_of_zip(raw.content)]
    if start.startswith(b"{\\rtf"):
        return RTF
    if looks_binary(raw.content, charset) or start.startswith(_MARKUP_STARTS):
        raise refusal(raw)
    if start.startswith(_HTML_STARTS) or (start.startswith(b"<?xml") and b"<html" in start):
        return HTML
    return XML if start.startswith(_XML_STARTS) else TEXT
