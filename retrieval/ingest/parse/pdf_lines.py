"""The lines of a PDF page, each with the cells that wide gaps part."""

import ctypes
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import pypdfium2
import pypdfium2.raw as pdfium

from retrieval.ingest.parse.pdf_rules import Grid, page_grids

BROKEN_WORD: Final = "\ufffe"  #: PDFium's replacement for a hyphen that breaks a word.
#: A line also ends after a broken word, where PDFium writes no line end.
_LINE_END: Final = re.compile(rf"\r?\n|(?<={BROKEN_WORD})")
_WORD: Final = re.compile(r"\S+")
_CELL_GAP: Final = 1.5  #: Minimum gap between two cells, in characters.
_SAME_ROW: Final = 0.8

Box = tuple[float, float, float, float]  #: Left, bottom, right, top.


@dataclass(frozen=True, slots=True)
class Cell:
    """A part of a line, or a word, with its left and right end."""

    text: str
    left: float
    right: float


@dataclass(frozen=True, slots=True)
class Line:
    """One line of text; coordinates in points, `bottom` growing up the page."""

    cells: tuple[Cell, ...]
    words: tuple[Cell, ...]
    page: int
    bottom: float
    height: float

    @property
    def text(self) -> str:
        """All of its text."""
        return " ".join(cell.text for cell in self.cells)

    @property
    def left(self) -> float:
        """Its left end."""
        return self.cells[0].left

    @property
    def right(self) -> float:
        """Its right end."""
        return self.cells[-1].right

    @property
    def middle(self) -> float:
        """The height of its middle."""
        return self.bottom + self.height / 2


def is_same_row(previous: Line, line: Line) -> bool:
    """Return whether a line goes on to the right of another, as cells of a row do."""
    is_level = previous.page == line.page and abs(previous.bottom - line.bottom) < _SAME_ROW * line.height
    return is_level and line.left >= previous.right


def read_page(document: pypdfium2.PdfDocument, index: int) -> tuple[list[Line], list[Grid]]:
    """Return the lines of a page in the order of the file, and its grids. Raises PdfiumError for a damaged page."""
    page = document[index]
    text_page = page.get_textpage()
    grids = page_grids(page)
    lines = list(_lines(text_page, index + 1))
    text_page.close()
    page.close()
    return lines, grids


def _lines(text_page: pypdfium2.PdfTextPage, number: int) -> Iterator[Line]:
    start = 0
    text = text_page.get_text_range()
    for line_end in (*_LINE_END.finditer(text), None):
        words = list(_WORD.finditer(text, start, line_end.start() if line_end else len(text)))
        if words:
            yield _line(text_page, words, number)
        start = line_end.end() if line_end else len(text)


def _line(text_page: pypdfium2.PdfTextPage, matches: list[re.Match[str]], number: int) -> Line:
    firsts = [_character_box(text_page, match.start()) for match in matches]
    rights = [_character_box(text_page, match.end() - 1)[2] for match in matches]
    words = tuple(Cell(match[0], first[0], right) for match, first, right in zip(matches, firsts, rights, strict=True))
    width = sum(it.right - it.left for it in words) / sum(len(it.text) for it in words)
    # Words in another font have another height and another base.
    boxes = sorted(firsts[:: max(1, len(firsts) // 3)], key=lambda box: box[3] - box[1])
    _, bottom, _, top = boxes[len(boxes) // 2]
    gap = _CELL_GAP * max(width, 1)
    cells = cells_of(words, lambda word, following: following.left - word.right > gap)
    return Line(cells, words, number, bottom=bottom, height=top - bottom)


def cells_of(words: Sequence[Cell], is_parted: Callable[[Cell, Cell], bool]) -> tuple[Cell, ...]:
    """Return words as cells, which begin where two of them are parted."""
    starts = [at for at, (word, following) in enumerate(pairwise(words), start=1) if is_parted(word, following)]
    parts = (words[begin:end] for begin, end in zip((0, *starts), (*starts, len(words)), strict=True))
    return tuple(Cell(" ".join(it.text for it in part), part[0].left, part[-1].right) for part in parts)


def _character_box(text_page: pypdfium2.PdfTextPage, text_index: int) -> Box:
    box = pdfium.FS_RECTF()
    character = pdfium.FPDFText_GetCharIndexFromTextIndex(text_page, text_index)
    if character < 0 or not pdfium.FPDFText_GetLooseCharBox(text_page, character, ctypes.byref(box)):
        return 0, 0, 0, 0
    return box.left, box.bottom, box.right, box.top
