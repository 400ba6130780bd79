"""PDF: the text layer as paragraphs with page numbers."""

import ctypes
import re
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

import pypdfium2
import pypdfium2.raw as pdfium

from retrieval.errors import IngestError
from retrieval.ingest.parse.finish import finished
from retrieval.ingest.parse.pdf_layout import BROKEN_WORD, Line, blocks_of_pages, without_running_lines
from retrieval.text.document import ParsedDocument, RawDocument

_MAX_PAGES: Final = 5000
#: A line also ends after a broken word, where PDFium writes no line end.
_LINE_END: Final = re.compile(rf"\r?\n|(?<={BROKEN_WORD})")
_DATE: Final = re.compile(r"D:(\d{4})(\d{2})(\d{2})")
#: PDFium keeps global state and crashes when two threads are inside it.
_PDFIUM_LOCK: Final = threading.Lock()


def parse_pdf(raw: RawDocument) -> ParsedDocument:
    """Return the document of a PDF file: paragraphs, without running headers, footers and page numbers.

    Raises IngestError: `encrypted` (needs a password), `no_text` (a scan), `too_large` (pages),
    `corrupt`.
    """
    with _PDFIUM_LOCK:
        pages, properties = _read(raw.content)
    if not any(pages):
        raise IngestError("no_text", "The PDF has no text layer. It is probably a scan.")
    return finished(
        raw,
        source_type="pdf",
        blocks=blocks_of_pages(without_running_lines(pages)),
        metadata={
            "author": properties.get("Author", ""),
            "subject": properties.get("Subject", ""),
            "keywords": properties.get("Keywords", ""),
            "created": _iso_date(properties.get("CreationDate", "")),
            "modified": _iso_date(properties.get("ModDate", "")),
            "pages": str(len(pages)),
        },
        property_title=properties.get("Title", ""),
    )


def _read(content: bytes) -> tuple[list[list[Line]], dict[str, str]]:
    try:
        with pypdfium2.PdfDocument(content) as document:
            if len(document) > _MAX_PAGES:
                raise IngestError("too_large", f"The PDF has more than {_MAX_PAGES} pages.")
            pages = [_page_lines(document, number) for number in range(len(document))]
            properties: dict[str, str] = {}
            # The text may be readable although the properties are damaged.
            with suppress(UnicodeDecodeError):
                properties = dict(document.get_metadata_dict(skip_empty=True))
            return pages, properties
    except pypdfium2.PdfiumError as error:
        if getattr(error, "err_code", None) == pdfium.FPDF_ERR_PASSWORD:
            raise IngestError("encrypted", "The PDF is protected by a password.") from error
        raise IngestError("corrupt", "The file cannot be read as PDF.") from error


def _page_lines(document: pypdfium2.PdfDocument, index: int) -> list[Line]:
    page = document[index]
    text_page = page.get_textpage()
    lines = list(_lines(text_page, index + 1))
    text_page.close()
    page.close()
    return lines


def _lines(text_page: pypdfium2.PdfTextPage, number: int) -> Iterator[Line]:
    start = 0
    text = text_page.get_text_range()
    for line_end in (*_LINE_END.finditer(text), None):
        end = line_end.start() if line_end else len(text)
        line = text[start:end]
        if line.strip():
            first, written = start + len(line) - len(line.lstrip()), line.strip()
            left, bottom, _, top = _character_box(text_page, first)
            _, _, right, _ = _character_box(text_page, first + len(written) - 1)
            yield Line(" ".join(written.split()), number, left=left, right=right, bottom=bottom, height=top - bottom)
        start = line_end.end() if line_end else end


def _character_box(text_page: pypdfium2.PdfTextPage, text_index: int) -> tuple[float, float, float, float]:
    box = pdfium.FS_RECTF()
    character = pdfium.FPDFText_GetCharIndexFromTextIndex(text_page, text_index)
    if character < 0 or not pdfium.FPDFText_GetLooseCharBox(text_page, character, ctypes.byref(box)):
        return 0, 0, 0, 0
    return box.left, box.bottom, box.right, box.top


def _iso_date(written: str) -> str:
    found = _DATE.match(written)
    return "-".join(found.groups()) if found else ""
