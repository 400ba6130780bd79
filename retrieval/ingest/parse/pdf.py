"""PDF: the text layer as headings, tables and paragraphs, without running headers; broken words are repaired."""

import math
import re
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import accumulate, pairwise
from statistics import median
from typing import Final

import pypdfium2
import pypdfium2.raw as pdfium

from retrieval.errors import IngestError
from retrieval.ingest.parse.finish import finished, title_from_name, title_from_properties
from retrieval.ingest.parse.pdf_lines import BROKEN_WORD, Line, is_same_row, read_page
from retrieval.ingest.parse.pdf_rules import Grid
from retrieval.ingest.parse.pdf_tables import Table, with_tables
from retrieval.ingest.parse.plain import NO_HEADING, has_leader, is_contents, with_marks
from retrieval.text.document import Block, BlockKind, ParsedDocument, RawDocument
from retrieval.text.units import CELL_BAR

_BLOCK_GAP: Final = 1.35  #: A gap this many times the usual leading separates two blocks.
_MAX_LEADING: Final = 2.5  #: Gaps larger than this many line heights do not count as leading.
_PAGE_NUMBER: Final = re.compile(r"\W{0,100}(?:page\s+)?#(?:\s*(?:of|/|-)\s*#)?\W{0,100}")
_WITH_PAGE: Final = re.compile(r".*\b(?:page|seite|página|pág\.) #(?:\s*(?:of|von|sur|de|/)\s*#)?\W*")
_NUMBERS: Final = re.compile(r"\d+|^[ivxlc]{1,7}$")
_NUMBERED_PART: Final = re.compile(r"[^\W\d_]+ #[.:]? (?=.)")
_MAX_EDGE_LINES: Final = 3  #: Maximum lines of a header or footer before a gap, and maximum number of such layers.
_MAX_LAYERS: Final = 3
_MIN_PAGES: Final = 3
_MIN_NUMBERED_PAGES: Final = 2
#: Minimum share of the pages with a running line between its first and last page (left or right pages).
_SHARE_OF_SPAN: Final = 0.4
_SHARE_OF_PAGES: Final = 0.4  #: A line on this share of all pages is removed from all of them.
_WORD: Final = re.compile(r"\w[\w'\u2019]*")
_BROKEN: Final = re.compile(rf"(?<!\w)(\w+){BROKEN_WORD}(\w+)")
_HYPHEN_AT_END: Final = re.compile(r"\w[-\u00ad\u2010]$")
_OPEN_ADDRESS: Final = re.compile(r"https?:(?://[^\s()]*[./_=&?-])?$")
_FIGURE: Final = re.compile(r"[$€£(]*[\d\u2013\u2014-][\d,.%)]*")
_SENTENCE_END: Final = re.compile(r"[.!?:;][\"'\u201d\u2019)\]]*$")
_ITEM: Final = re.compile(r"(?:[^\w\s]|o|\d{1,2}[.)])\s+\w")
_MIN_INDENT: Final = 3  #: In points.
_SPREAD: Final = 0.75  #: Character width, in line heights, above which a line has spaced columns.
_SIZE_CHANGE: Final = 1.15
#: Tolerance for detecting wrapped lines: hyphens, justified text and kerning leave some room.
_SLACK_CHARACTERS: Final = 3
_MIN_START: Final = 4  #: Shorter words ("in", "for") start many words that were broken.
_MAX_PAGES: Final = 5000
_MAX_HEADING_LINES: Final = 3
_MIN_LETTERS: Final = 3
_MAX_HEADING: Final = 200
_MAX_LEVEL: Final = 6
_DATE: Final = re.compile(r"D:(\d{4})(\d{2})(\d{2})")
_PDFIUM_LOCK: Final = threading.Lock()  #: PDFium keeps global state and crashes when two threads are inside it.


def _usual_leading(lines: Sequence[Line]) -> float:
    """Return the usual distance between the lines of a page, 0 if it has none."""
    gaps = [
        above.bottom - below.bottom
        for above, below in pairwise(lines)
        if 0 < above.bottom - below.bottom < _MAX_LEADING * max(above.height, 1)
    ]
    return median(gaps) if gaps else 0


def _is_apart(above: Line, below: Line, leading: float, height: float = math.inf) -> bool:
    """Return whether a gap parts two lines; lines that are larger than the usual `height` have larger gaps."""
    scale = max(1, min(above.height, below.height) / max(height, 1))
    return above.bottom - below.bottom > _BLOCK_GAP * scale * (leading or max(above.height, 1))


def _without_outermost(pages: list[list[Line]]) -> list[list[Line]]:
    edges = [_edge_lines(page) for page in pages]
    pages_of: defaultdict[str, set[int]] = defaultdict(set)
    for number, edge in enumerate(edges):
        for line in edge:
            for signature in _signatures(line):
                pages_of[signature].add(number)
    running = {signature: _repetitions(signature, found, len(edges)) for signature, found in pages_of.items()}
    return [
        [
            line
            for line in page
            if line not in edge or not any(number in running[signature] for signature in _signatures(line))
        ]
        for number, (page, edge) in enumerate(zip(pages, edges, strict=True))
    ]


def _repetitions(signature: str, pages: set[int], page_count: int) -> set[int]:
    """Return the pages that repeat a line; the title of a chapter, which many but not most have, stays once."""
    if _PAGE_NUMBER.fullmatch(signature) or _WITH_PAGE.fullmatch(signature):
        return pages if len(pages) >= _MIN_NUMBERED_PAGES else set()
    span = max(pages) - min(pages) + 1
    if len(pages) < _MIN_PAGES or len(pages) < _SHARE_OF_SPAN * span:
        return set()
    return pages if len(pages) >= _SHARE_OF_PAGES * page_count else pages - {min(pages)}


def _edge_lines(page: Sequence[Line]) -> frozenset[Line]:
    downwards = sorted(page, key=lambda line: -line.bottom)
    leading = _usual_leading(downwards)
    pairs = list(pairwise(downwards))
    top = _lines_to_gap([(above, _is_apart(above, below, leading)) for above, below in pairs])
    bottom = _lines_to_gap([(below, _is_apart(above, below, leading)) for above, below in reversed(pairs)])
    return frozenset(top + bottom)


def _lines_to_gap(edge: Sequence[tuple[Line, bool]]) -> list[Line]:
    """Return the lines up to the first gap; none if there is no gap after the first few."""
    nearest = edge[:_MAX_EDGE_LINES]
    gap = next((position for position, (_, apart) in enumerate(nearest, start=1) if apart), 0)
    return [line for line, _ in nearest[:gap]]


def _signatures(line: Line) -> Iterator[str]:
    """Yield what is the same on each page that a line runs over.

    It is the text with numbers as '#', also the Roman one of a page, and of "Chapter 2" with its sections the place.
    """
    text = _NUMBERS.sub("#", line.text.casefold().strip())
    yield text
    if numbered := _NUMBERED_PART.match(text):
        yield f"{numbered[0]} {round(line.bottom)}"


def _groups(
    pages: Sequence[Sequence[Line]], grids: Sequence[Sequence[Grid]], height: float
) -> Iterator[list[Line] | Table]:
    group: list[Line] = []
    table: Table | None = None  # One of both is empty.
    for page, drawn in zip(pages, grids, strict=True):
        leading = _usual_leading(page)
        for item in with_tables(page, drawn, table):
            longer = table.continued_by(item) if table and isinstance(item, Table) else None
            if table and not longer:
                yield table
                table = None
            if group and (isinstance(item, Table) or _starts_block(group[-1], item, leading, height)):
                yield group
                group = []
            if isinstance(item, Table):
                table = longer or item
            else:
                group.append(item)
    if table:
        yield table
    if group:
        yield group


def _starts_block(previous: Line, line: Line, leading: float, height: float) -> bool:
    if line.page != previous.page or line.bottom > previous.bottom + line.height / 2:
        # A sentence may continue after the end of a column or a page.
        is_open = not _SENTENCE_END.search(previous.text) and not _is_row(previous)
        return not (is_open and line.text[:1].islower() and not _is_row(line))
    sizes = sorted((max(previous.height, 1), max(line.height, 1)))
    is_resized = sizes[1] > _SIZE_CHANGE * sizes[0] and not _goes_on(previous, line)
    return is_resized or _is_apart(previous, line, leading, height)


def _goes_on(previous: Line, line: Line) -> bool:
    """Return whether a line goes on with a sentence or an address, whatever its font."""
    is_open = not _SENTENCE_END.search(previous.text) and line.text[:1].islower()
    return is_open or _is_broken_address(previous, line)


def _usual_height(pages: Sequence[Sequence[Line]]) -> float:
    """Return the height of the lines that most of the text is in, 0 without any."""
    lines = sorted((line.height, len(line.text)) for page in pages for line in page)
    half = sum(length for _, length in lines) / 2
    return next(
        (height for (height, _), done in zip(lines, accumulate(it for _, it in lines), strict=True) if done >= half), 0
    )


def _heading_size(group: Sequence[Line], height: float) -> int:
    """Return the size of a heading, a few lines larger than the usual `height`; 0 for other groups."""
    size = min(line.height for line in group)
    if not size > _SIZE_CHANGE * height > 0 or len(group) > _MAX_HEADING_LINES:
        return 0
    text = _joined(group)
    is_heading = len(text) <= _MAX_HEADING and sum(map(str.isalpha, text)) >= _MIN_LETTERS
    return round(size) if is_heading and not text.endswith(NO_HEADING) else 0


def _levels(sizes: Iterable[int]) -> dict[int, int]:
    """Return the level of each size of heading: the largest is 1. One that is there once shares the level below it."""
    levels, level = {0: 0}, 1
    for size, count in sorted(Counter(filter(None, sizes)).items(), reverse=True):
        levels[size] = min(level, _MAX_LEVEL)
        level += count > 1
    return levels


def _joined(group: Sequence[Line]) -> str:
    """Return the group's text: wrapped lines joined by spaces, lines that end early by line ends."""
    right = max(line.right for line in group)
    parts = [group[0].text]
    for previous, line in pairwise(group):
        if _HYPHEN_AT_END.search(previous.text) and line.text[:1].islower():
            parts[-1] = parts[-1][:-1] + BROKEN_WORD
        elif previous.text.endswith(BROKEN_WORD) or _is_broken_address(previous, line):
            pass
        elif is_same_row(previous, line) or (_is_wrapped(previous, line, right) and not _starts_item(previous, line)):
            parts.append(" ")
        else:
            parts.append("\n")
        parts.append(line.text)
    return "".join(parts)


def _is_broken_address(previous: Line, line: Line) -> bool:
    return not line.text[:1].isupper() and _OPEN_ADDRESS.search(previous.text) is not None


def _starts_item(previous: Line, line: Line) -> bool:
    """Return whether a line begins with a number or bullet, behind a sentence or at another indentation."""
    is_ended = _SENTENCE_END.search(previous.text) is not None or abs(line.left - previous.left) > _MIN_INDENT
    return is_ended and _ITEM.match(line.text) is not None


def _is_wrapped(previous: Line, line: Line, right: float) -> bool:
    if previous.page != line.page:
        return True
    if _is_row(previous) or _is_row(line):
        return False
    first_word = line.text.partition(" ")[0]
    return previous.right + _character_width(line) * (len(first_word) + _SLACK_CHARACTERS) >= right


def _is_row(line: Line) -> bool:
    is_spread = " " in line.text and _character_width(line) > _SPREAD * line.height > 0
    last_words = line.text.rsplit(maxsplit=2)[-2:]
    return is_spread or has_leader(line.text) or all(map(_FIGURE.fullmatch, last_words))


def _character_width(line: Line) -> float:
    return (line.right - line.left) / max(len(line.text), 1)


def _blocks(pages: Sequence[Sequence[Line]], grids: Sequence[Sequence[Grid]]) -> Iterator[Block]:
    """Yield the headings, tables and paragraphs of a file, without its table of contents."""
    height = _usual_height(pages)
    groups = list(_groups(pages, grids, height))
    texts = ["\n".join(map(CELL_BAR.join, it.rows)) if isinstance(it, Table) else _joined(it) for it in groups]
    words = {word.casefold() for text in texts for word in _WORD.findall(_BROKEN.sub(" ", text))}
    heights = {page[0].page: max(height, _usual_height([page])) for page in pages if page}
    sizes = [0 if isinstance(it, Table) else _heading_size(it, heights[it[0].page]) for it in groups]
    levels = _levels(sizes)
    lead = ""
    for group, size, following, text in zip(groups, sizes, (*sizes[1:], 0), texts, strict=True):
        repaired = _BROKEN.sub(lambda broken: _repaired(broken[1], broken[2], words), text).replace(BROKEN_WORD, "-")
        lines = repaired.split("\n")
        if isinstance(group, Table):
            yield Block(BlockKind.TABLE, repaired, header=lines[0], page=group.page)
        elif following > size > 0:  # "Chapter 2" above its name.
            lead += f"{repaired} "
        elif size:
            yield Block(BlockKind.HEADING, lead + " ".join(lines), level=levels[size], page=group[0].page)
            lead = ""
        elif not is_contents(lines):
            yield Block(BlockKind.PARAGRAPH, "\n".join(with_marks(lines)), page=group[0].page)


def _repaired(start: str, end: str, words: set[str]) -> str:
    """Return the joined word, or the hyphenated one if only its start is one of the document's words."""
    joined = start + end
    is_compound = len(start) >= _MIN_START and start.casefold() in words and joined.casefold() not in words
    return f"{start}-{end}" if is_compound else joined


def parse_pdf(raw: RawDocument) -> ParsedDocument:
    """Return headings, tables and paragraphs.

    Raises IngestError: `encrypted`, `no_text` (a scan), `too_large` (pages), `corrupt`.
    """
    with _PDFIUM_LOCK:
        pages, grids, properties = _read(raw.content)
    if not any(pages):
        raise IngestError("no_text", "The PDF has no text layer. It is probably a scan.")
    left = [list(page) for page in pages]
    for _ in range(_MAX_LAYERS):
        before, left = left, _without_outermost(left)
        if left == before:
            break
    return finished(
        raw,
        source_type="pdf",
        blocks=_blocks(left, grids),
        metadata={
            "author": properties.get("Author", ""),
            "subject": properties.get("Subject", ""),
            "keywords": properties.get("Keywords", ""),
            "created": _iso_date(properties.get("CreationDate", "")),
            "modified": _iso_date(properties.get("ModDate", "")),
            "pages": str(len(pages)),
        },
        explicit_title=title_from_properties(properties.get("Title", "")) or title_from_name(raw.name),
    )


def _read(content: bytes) -> tuple[list[list[Line]], list[list[Grid]], dict[str, str]]:
    try:
        with pypdfium2.PdfDocument(content) as document:
            if len(document) > _MAX_PAGES:
                raise IngestError("too_large", f"The PDF has more than {_MAX_PAGES} pages.")
            read = [read_page(document, number) for number in range(len(document))]
            properties: dict[str, str] = {}
            # The text may be readable although the properties are damaged.
            with suppress(UnicodeDecodeError):
                properties = dict(document.get_metadata_dict(skip_empty=True))
            return [lines for lines, _ in read], [grids for _, grids in read], properties
    except pypdfium2.PdfiumError as error:
        if getattr(error, "err_code", None) == pdfium.FPDF_ERR_PASSWORD:
            raise IngestError("encrypted", "The PDF is protected by a password.") from error
        raise IngestError("corrupt", "The file cannot be read as PDF.") from error


def _iso_date(written: str) -> str:
    found = _DATE.match(written)
    return "-".join(found.groups()) if found else ""
