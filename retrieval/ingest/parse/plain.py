"""The structure that the layout of plain text shows: headings, list items, tables with borders or dotted leaders."""

import re
from collections.abc import Sequence
from itertools import groupby
from typing import Final

from retrieval.ingest.parse.builder import BlockBuilder
from retrieval.text.document import Block

_BLANK_LINES: Final = re.compile(r"\n[ \t]*\n")
#: A word that a formatter of manual pages broke at a line's end; its second half begins the next line.
_BROKEN: Final = re.compile(r"(?<=\w)\u2010\n([ \t]*)(\S+)[ \t]*")
MARKS: Final = (
    "\u00b7\u2022\u2023\u25aa\u25ab\u25a0\u25a1\u25cb\u25cf\u25e6\u2756\u27a2\u2713\u2714\uf0a7\uf0b7\uf0d8\uf0fc"
)
_MARK: Final = re.compile(rf"^([ \t]*)[{MARKS}][ \t]*(?=\S)")
_LETTER_MARK: Final = re.compile(r"^[ \t]*o[ \t]+(?=\S)")  #: The letter o, which also begins lines of prose.
_RULE: Final = re.compile(r"[ \t]*(?=[^\w\s]*[-=\u2500\u2501\u2550])[-+=|:\u2500-\u257f]{3,}[ \t]*")
_ROW: Final = re.compile(r"[|\u2502\u2503\u2551].+[|\u2502\u2503\u2551]")
_BORDER: Final = re.compile(r"[|\u2502\u2503\u2551]")
_LEADER: Final = re.compile(r"\.{4,}+|(?: \.){4,}+")
_PAGE: Final = re.compile(r"\d{1,4}|[ivxlc]{1,7}")
_MIN_ENTRIES: Final = 3  #: Minimum lines of a table of contents.
_MIN_ROWS: Final = 2
_UNDERLINES: Final = {"=": 1, "*": 1, "#": 1, "-": 2, "~": 3, "^": 3}
_MIN_UNDERLINE: Final = 3
_NUMBER: Final = re.compile(r"(\d{1,2}(?:\.\d{1,2}){1,3}(?=[. \t])|\d{1,2}(?=[.)]))[.)]?[ \t]+(?=\S)")
_MIN_LETTERS: Final = 3
_MAX_HEADING: Final = 120
_MAX_NUMBERED_LINES: Final = 2
NO_HEADING: Final = (".", ",", ";", ":")  #: Ends of lines that are no headings.


def plain_blocks(text: str) -> list[Block]:
    """Return the blocks of plain text, which is tidy; a table of contents is left out."""
    builder = BlockBuilder()
    paragraphs = [it.rstrip() for it in _BLANK_LINES.split(_BROKEN.sub(r"\2\n\1", text)) if it.strip()]
    for before, paragraph, after in zip(("", *paragraphs), paragraphs, (*paragraphs[1:], ""), strict=False):
        level = _numbered_level(before, paragraph, after)
        if level:
            builder.heading(paragraph, level)
        elif not is_contents(paragraph.split("\n")):
            _paragraph(builder, paragraph.split("\n"))
    return builder.blocks()


def is_contents(lines: Sequence[str]) -> bool:
    """Return whether lines are a table of contents: names, dotted leaders and rising page numbers."""
    found = [row[1] for row in map(_led_row, lines) if row]
    pages = [int(it) for it in found if it.isdecimal()]
    is_long = len(found) >= _MIN_ENTRIES and 2 * len(found) >= len(lines)
    return is_long and all(map(_PAGE.fullmatch, found)) and pages == sorted(pages)


def has_leader(line: str) -> bool:
    """Return whether a line has dots that lead the eye from a name to a value."""
    return _LEADER.search(line) is not None


def with_marks(lines: Sequence[str]) -> list[str]:
    """Return lines with the marks of list items as bullets."""
    is_lettered = bool(lines) and _LETTER_MARK.match(lines[0]) is not None
    indent = _indent(lines[0]) if lines else 0
    return [
        f"{line[:indent]}\u2022 {_LETTER_MARK.sub('', line)}"
        if is_lettered and _indent(line) == indent and _LETTER_MARK.match(line)
        else _MARK.sub("\\1\u2022 ", line)
        for line in lines
    ]


def _paragraph(builder: BlockBuilder, lines: list[str]) -> None:
    """Add a paragraph: its heading, its tables, its text."""
    level = _heading_level(lines)
    if level:
        builder.heading(lines[0], level)
        lines = lines[1 + _is_underline(lines[0], lines[1:]) :]
    text: list[str] = []
    for is_drawn, group in groupby(lines, key=_is_drawn):
        run = list(group)
        rows = _drawn_rows(run) if is_drawn else []
        if len(rows) < _MIN_ROWS:
            text += run
            continue
        _text(builder, text)
        builder.table(rows, has_header=True)
        text = []
    _text(builder, text)


def _text(builder: BlockBuilder, lines: list[str]) -> None:
    """Add lines as a table if each has a dotted leader, and else as a paragraph."""
    rows = list(map(_led_row, lines))
    if len(rows) >= _MIN_ROWS and all(rows):
        builder.table(rows, has_header=False)
    else:
        builder.paragraph("\n".join(with_marks(lines)))


def _heading_level(lines: Sequence[str]) -> int:
    """Return the level of the heading that the first line of a paragraph is, 0 for none.

    It is underlined, or in capitals and not followed by another line in capitals.
    """
    first, *others = lines
    if not _could_be_heading(first):
        return 0
    if _is_underline(first, others):
        return _UNDERLINES[others[0].strip()[0]]
    is_title = first.isupper() and 2 * sum(map(str.isupper, first)) > len(first.strip())
    return int(is_title and not _NUMBER.match(first.lstrip()) and not (others and others[0].isupper()))


def _could_be_heading(line: str) -> bool:
    # Wide blanks separate columns.
    written = line.strip()
    is_short = (
        sum(map(str.isalpha, written)) >= _MIN_LETTERS
        and len(written) <= _MAX_HEADING
        and not written.endswith(NO_HEADING)
    )
    return is_short and "  " not in written and "\t" not in written


def _is_underline(line: str, following: Sequence[str]) -> bool:
    rule = following[0].strip() if following else ""
    is_long = len(rule) >= max(_MIN_UNDERLINE, len(line.strip()) - 2)
    return is_long and rule[0] in _UNDERLINES and rule == rule[0] * len(rule)


def _numbered_level(before: str, paragraph: str, after: str) -> int:
    """Return the level of a paragraph that is a numbered heading, 0 for another; "1." among items is none."""
    number = _NUMBER.match(paragraph)
    _, *wrapped = paragraph.split("\n")
    is_short = len(wrapped) < _MAX_NUMBERED_LINES and not any(map(_depth, wrapped))
    is_heading = is_short and _could_be_heading(" ".join(paragraph.split()))
    if not (number and after and is_heading and paragraph[number.end()].isupper()):
        return 0
    depth = _depth(paragraph)
    return 0 if depth == 1 and 1 in {_depth(before), _depth(after)} else depth


def _depth(paragraph: str) -> int:
    """Return the number of parts of the number that a paragraph begins with, 0 without one."""
    number = _NUMBER.match(paragraph.lstrip())
    return number[1].count(".") + 1 if number else 0


def _is_drawn(line: str) -> bool:
    """Return whether a line is one of a table with borders: a rule, or cells between bars."""
    written = line.strip()
    return _ROW.fullmatch(written) is not None or _RULE.fullmatch(line) is not None


def _drawn_rows(lines: Sequence[str]) -> list[list[str]]:
    """Return the rows of a table with borders: what is between two rules if each row has one, else each line."""
    groups = [list(group) for is_rule, group in groupby(lines, key=_is_rule) if not is_rule]
    found = [[_cells(line) for line in group] for group in groups]
    rows = [row for group in found for row in group]
    widths = {len(row) for row in rows}
    if len(widths) != 1 or 1 in widths:  # A drawing, or a text in a box.
        return []
    if len(found) > _MIN_ROWS:
        return [[" ".join(filter(None, column)) for column in zip(*group, strict=True)] for group in found]
    return rows


def _is_rule(line: str) -> bool:
    return _RULE.fullmatch(line) is not None


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in _BORDER.split(line.strip()[1:-1])]


def _led_row(line: str) -> list[str]:
    """Return the name and the value that a dotted leader joins, nothing without one."""
    cells = [cell.strip() for cell in _LEADER.split(line, maxsplit=1)]
    return cells if len(cells) > 1 and all(cells) else []


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
