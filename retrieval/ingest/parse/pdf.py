"""PDF: the text layer as paragraphs with page numbers, without running headers; broken words are repaired."""

import ctypes
import re
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Final

import pypdfium2
import pypdfium2.raw as pdfium

from retrieval.errors import IngestError
from retrieval.ingest.parse.finish import finished
from retrieval.text.document import Block, BlockKind, ParsedDocument, RawDocument

_BLOCK_GAP: Final = 1.35  #: A gap this many times the usual leading separates two blocks.
_MAX_LEADING: Final = 2.5  #: Gaps larger than this many line heights do not count as leading.
_PAGE_NUMBER: Final = re.compile(r"\W{0,100}(?:page\s+)?(?:#|[ivxlc]{1,7})(?:\s*(?:of|/|-)\s*#)?\W{0,100}")
_MAX_EDGE_LINES: Final = 3  #: Maximum lines of a header or footer before a gap, and maximum number of such layers.
_MAX_LAYERS: Final = 3
_MIN_PAGES: Final = 3
_MIN_NUMBERED_PAGES: Final = 2
#: Minimum share of the pages with a running line between its first and last page (left or right pages).
_SHARE_OF_SPAN: Final = 0.4
_SHARE_OF_PAGES: Final = 0.4  #: A line on this share of all pages is removed from all of them.
BROKEN_WORD: Final = "\ufffe"  #: PDFium's replacement for a hyphen that breaks a word.
_WORD: Final = re.compile(r"\w[\w'\u2019]*")
_BROKEN: Final = re.compile(rf"(?<!\w)(\w+){BROKEN_WORD}(\w+)")
_HYPHEN_AT_END: Final = re.compile(r"\w[-\u00ad\u2010]$")
_FIGURE: Final = re.compile(r"[$€£(]*[\d\u2013\u2014-][\d,.%)]*")
_SENTENCE_END: Final = re.compile(r"[.!?:;][\"'\u201d\u2019)\]]*$")
_SPREAD: Final = 0.75  #: Character width, in line heights, above which a line has spaced columns.
_SIZE_CHANGE: Final = 1.15
_SAME_ROW: Final = 0.8
#: Tolerance for detecting wrapped lines: hyphens, justified text and kerning leave some room.
_SLACK_CHARACTERS: Final = 3
_MIN_START: Final = 4  #: Shorter words ("in", "for") start many words that were broken.
_MAX_PAGES: Final = 5000
#: A line also ends after a broken word, where PDFium writes no line end.
_LINE_END: Final = re.compile(rf"\r?\n|(?<={BROKEN_WORD})")
_DATE: Final = re.compile(r"D:(\d{4})(\d{2})(\d{2})")
_PDFIUM_LOCK: Final = threading.Lock()  #: PDFium keeps global state and crashes when two threads are inside it.


@dataclass(frozen=True, slots=True)
class _Line:
    """One line of text; coordinates in points, `bottom` growing up the page."""

    text: str
    page: int
    left: float
    right: float
    bottom: float
    height: float


def _usual_leading(lines: Sequence[_Line]) -> float:
    """Return the usual distance between the lines of a page, 0 if it has none."""
    gaps = [
        above.bottom - below.bottom
        for above, below in pairwise(lines)
        if 0 < above.bottom - below.bottom < _MAX_LEADING * max(above.height, 1)
    ]
    return median(gaps) if gaps else 0


def _is_apart(above: _Line, below: _Line, leading: float) -> bool:
    return above.bottom - below.bottom > _BLOCK_GAP * (leading or max(above.height, 1))


def _without_outermost(pages: list[list[_Line]]) -> list[list[_Line]]:
    edges = [_edge_lines(page) for page in pages]
    pages_of: defaultdict[str, set[int]] = defaultdict(set)
    for number, edge in enumerate(edges):
        for line in edge:
            pages_of[_signature(line)].add(number)
    running = {signature: _repetitions(signature, found, len(edges)) for signature, found in pages_of.items()}
    return [
        [line for line in page if line not in edge or number not in running.get(_signature(line), ())]
        for number, (page, edge) in enumerate(zip(pages, edges, strict=True))
    ]


def _repetitions(signature: str, pages: set[int], page_count: int) -> set[int]:
    """Return the pages that repeat a line; the title of a chapter, which many but not most have, stays once."""
    if _PAGE_NUMBER.fullmatch(signature):
        return pages if len(pages) >= _MIN_NUMBERED_PAGES else set()
    span = max(pages) - min(pages) + 1
    if len(pages) < _MIN_PAGES or len(pages) < _SHARE_OF_SPAN * span:
        return set()
    return pages if len(pages) >= _SHARE_OF_PAGES * page_count else pages - {min(pages)}


def _edge_lines(page: Sequence[_Line]) -> frozenset[_Line]:
    downwards = sorted(page, key=lambda line: -line.bottom)
    leading = _usual_leading(downwards)
    pairs = list(pairwise(downwards))
    top = _lines_to_gap([(above, _is_apart(above, below, leading)) for above, below in pairs])
    bottom = _lines_to_gap([(below, _is_apart(above, below, leading)) for above, below in reversed(pairs)])
    return frozenset(top + bottom)


def _lines_to_gap(edge: Sequence[tuple[_Line, bool]]) -> list[_Line]:
    """Return the lines up to the first gap; none if there is no gap after the first few."""
    nearest = edge[:_MAX_EDGE_LINES]
    gap = next((position for position, (_, apart) in enumerate(nearest, start=1) if apart), 0)
    return [line for line, _ in nearest[:gap]]


def _signature(line: _Line) -> str:
    """Return the text with numbers as '#', which is the same on each page."""
    return re.sub(r"\d+", "#", line.text).casefold().strip()


def _groups(pages: Sequence[Sequence[_Line]]) -> Iterator[list[_Line]]:
    group: list[_Line] = []
    for page in pages:
        leading = _usual_leading(page)
        for line in page:
            if group and _starts_block(group[-1], line, leading):
                yield group
                group = []
            group.append(line)
    if group:
        yield group


def _starts_block(previous: _Line, line: _Line, leading: float) -> bool:
    if line.page != previous.page or line.bottom > previous.bottom + line.height / 2:
        # A sentence may continue after the end of a column or a page.
        is_open = not _SENTENCE_END.search(previous.text) and not _is_row(previous)
        return not (is_open and line.text[:1].islower() and not _is_row(line))
    sizes = sorted((max(previous.height, 1), max(line.height, 1)))
    return _is_apart(previous, line, leading) or sizes[1] > _SIZE_CHANGE * sizes[0]


def _joined(group: Sequence[_Line]) -> str:
    """Return the group's text: wrapped lines joined by spaces, lines that end early by line ends."""
    right = max(line.right for line in group)
    parts = [group[0].text]
    for previous, line in pairwise(group):
        if _HYPHEN_AT_END.search(previous.text) and line.text[:1].islower():
            parts[-1] = parts[-1][:-1] + BROKEN_WORD
        elif previous.text.endswith(BROKEN_WORD):
            pass
        elif _is_same_row(previous, line) or _is_wrapped(previous, line, right):
            parts.append(" ")
        else:
            parts.append("\n")
        parts.append(line.text)
    return "".join(parts)


def _is_same_row(previous: _Line, line: _Line) -> bool:
    is_level = previous.page == line.page and abs(previous.bottom - line.bottom) < _SAME_ROW * line.height
    return is_level and line.left >= previous.right


def _is_wrapped(previous: _Line, line: _Line, right: float) -> bool:
    if previous.page != line.page:
        return True
    if _is_row(previous) or _is_row(line):
        return False
    first_word = line.text.partition(" ")[0]
    return previous.right + _character_width(line) * (len(first_word) + _SLACK_CHARACTERS) >= right


def _is_row(line: _Line) -> bool:
    is_spread = " " in line.text and _character_width(line) > _SPREAD * line.height > 0
    last_words = line.text.rsplit(maxsplit=2)[-2:]
    return is_spread or all(map(_FIGURE.fullmatch, last_words))


def _character_width(line: _Line) -> float:
    return (line.right - line.left) / max(len(line.text), 1)


def _repaired(start: str, end: str, words: set[str]) -> str:
    """Return the joined word, or the hyphenated one if only its start is one of the document's words."""
    joined = start + end
    is_compound = len(start) >= _MIN_START and start.casefold() in words and joined.casefold() not in words
    return f"{start}-{end}" if is_compound else joined


def parse_pdf(raw: RawDocument) -> ParsedDocument:
    """Return the paragraphs. Raises IngestError: `encrypted`, `no_text` (a scan), `too_large` (pages), `corrupt`."""
    with _PDFIUM_LOCK:
        pages, properties = _read(raw.content)
    if not any(pages):
        raise IngestError("no_text", "The PDF has no text layer. It is probably a scan.")
    left = [list(page) for page in pages]
    for _ in range(_MAX_LAYERS):
        before, left = left, _without_outermost(left)
        if left == before:
            break
    groups = list(_groups(left))
    texts = [_joined(group) for group in groups]
    words = {word.casefold() for text in texts for word in _WORD.findall(_BROKEN.sub(" ", text))}
    repaired = (_BROKEN.sub(lambda broken: _repaired(broken[1], broken[2], words), text) for text in texts)
    return finished(
        raw,
        source_type="pdf",
        blocks=[
            Block(BlockKind.PARAGRAPH, text.replace(BROKEN_WORD, "-"), page=group[0].page)
            for group, text in zip(groups, repaired, strict=True)
        ],
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


def _read(content: bytes) -> tuple[list[list[_Line]], dict[str, str]]:
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


def _page_lines(document: pypdfium2.PdfDocument, index: int) -> list[_Line]:
    page = document[index]
    text_page = page.get_textpage()
    lines = list(_lines(text_page, index + 1))
    text_page.close()
    page.close()
    return lines


def _lines(text_page: pypdfium2.PdfTextPage, number: int) -> Iterator[_Line]:
    start = 0
    text = text_page.get_text_range()
    for line_end in (*_LINE_END.finditer(text), None):
        end = line_end.start() if line_end else len(text)
        line = text[start:end]
        if line.strip():
            first, written = start + len(line) - len(line.lstrip()), line.strip()
            left, bottom, _, top = _character_box(text_page, first)
            _, _, right, _ = _character_box(text_page, first + len(written) - 1)
            yield _Line(" ".join(written.split()), number, left=left, right=right, bottom=bottom, height=top - bottom)
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
