"""Splitting a chunk's text into units that can be quoted: sentences, list items, table rows, code. Pure."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise
from typing import Final

from retrieval.text.sentences import ends_as_sentence, split_sentences

_BLANK_LINE: Final = re.compile(r"\n[ \t]*\n")
_BULLET: Final = re.compile(r"\s*[-*•–]\s+\S")  # noqa: RUF001 -- an en dash is a bullet too
_SIGN: Final = re.compile(r"\W")  #: Of an item; numbers are no signs.
_NUMBERED: Final = re.compile(r"\s*(?:\d{1,3}|[a-z])[.)]\s+\S")
#: The number of an item within a line, behind the end of a sentence.
_NUMBER_INSIDE: Final = re.compile(
    r"(?:\A|(?<=[.!?:;)\"'”’»] ))(?:\(?(\d{1,2})[.)]|(?:Step|Schritt|Étape|Paso) (\d{1,2})[.:]) (?=\S)"  # noqa: RUF001 -- a typographic apostrophe
)
_MIN_INSIDE: Final = 3
CELL_BAR: Final = " | "
_CACHED_TEXTS: Final = 1_000  #: Several searches and several parts of a search split the same passages.
#: A line of a mail's head, of which a block has at least two.
_MAIL_FIELD: Final = re.compile(
    r"(?:From|To|Cc|CC|Date|Sent|Subject|Von|An|Datum|Gesendet|Betreff|De|À|Envoyé|Objet|Para|Fecha|Enviado|Asunto): \S"
)
_MIN_MAIL_FIELDS: Final = 2
_SUBJECT: Final = re.compile(r"(?:Subject|Betreff|Objet|Asunto): \S")
_VERSION: Final = re.compile(r"\W?v?\d+(?:\.\d+){1,3}\b[^|]*")  #: A heading of a changelog: "4.11.0 (24 June 2025)".
_SHORT_LINE: Final = 40
_MAX_HEADING_LENGTH: Final = 120
_MAX_TITLE_LENGTH: Final = 80
_MAX_ITEM_LENGTH: Final = 400  #: A longer list item or table row is split into its sentences.
_MAX_CODE_LENGTH: Final = 400  #: A longer block of code is split before its comments.
_MAX_FIGURES_LENGTH: Final = 200
_MIN_FIGURES: Final = 2
_MIN_CORNERED: Final = 2  #: A table with a header of figures has more rows.
_FLAG: Final = re.compile(r"\s--?[A-Za-z]")
_FIRST_FLAG: Final = re.compile(r"\s*--?\w")  #: What the first cell of a row about a flag begins with.
_COMMENTS: Final = ("#", "//", "--", "/*", "<!--")
_SIGNS: Final = frozenset("{}[]()<>=;$\\|/_&*#@~^\"'`")
_CODE_SIGN_SHARE: Final = 0.08
_FIGURE_SIGNS: Final = "()$€£¥%+-−–—*,."  # noqa: RUF001 -- the minus sign and dashes of printed tables
_PHONE: Final = re.compile(r"\(?(?:\+\d|0\d).*|.* 0\d{3,}")  #: Phone numbers, with the blanks between their parts.
_YEAR: Final = re.compile(r"(?:19|20)\d\d")
_FACT: Final = re.compile(r"[^\d:]{2,60}: .*\d")  #: A line such as "Release date: 2025-11-13", which is no heading.


class UnitKind(StrEnum):
    """The kind of a unit, which decides how it is quoted."""

    SENTENCE = "sentence"
    BULLET = "bullet"
    STEP = "step"
    ROW = "row"
    FIGURES = "figures"  #: A line of a table without cells, as PDF files have them: "Advertising 3,958 4,004".
    CODE = "code"


_ITEMS: Final = frozenset({UnitKind.BULLET, UnitKind.STEP})


@dataclass(frozen=True, slots=True)
class Unit:
    """A piece of text that can be quoted."""

    kind: UnitKind
    text: str  #: Verbatim, except that line breaks are spaces outside code.
    block: int  #: Index of its block in the chunk, from 0; a table, a list, a paragraph are blocks.
    header: str = ""  #: The header of a table row, or the line with the years above figures; empty otherwise.
    label: str = ""  #: What names it: the line without cells above the rows of a table, the first cell of a long row.
    heading: str = ""  #: The heading above it in the chunk's text; empty before the first one.
    title: str = ""  #: The last title or question above it, below the same heading; empty without one.
    is_title: bool = False  #: Whether it only names what is below it: "6. Fees", a line in capitals, a mail's subject.
    indent: int = 0  #: Number of blanks before a list item: a nested item has more than the one it belongs to.

    @property
    def is_finished(self) -> bool:
        """Whether it is complete: a sentence with its full stop, or another kind of unit."""
        return self.kind is not UnitKind.SENTENCE or ends_as_sentence(self.text)

    @property
    def is_item(self) -> bool:
        """Whether it is a list item or a step."""
        return self.kind in _ITEMS


@lru_cache(maxsize=_CACHED_TEXTS)
def split_units(text: str) -> tuple[Unit, ...]:
    """Return the units of a chunk's text in reading order; a heading is no unit but belongs to the units below it."""
    blocks = [block.strip("\n") for block in _BLANK_LINE.split(text) if block.strip()]
    units: list[Unit] = []
    heading = header = ""
    for number, (block, following) in enumerate(pairwise((*blocks, ""))):
        is_announced = bool(units) and units[-1].block == number - 1 and units[-1].text.endswith(":")
        if _could_be_heading(block) and not is_announced and following and not _could_be_heading(following):
            heading = " ".join(block.split())
        elif is_row(block) and is_header(block) and following and all(map(is_row, following.split("\n"))):
            header = block.strip()
        else:
            found = _units_of_block(block, number, header)
            units += (replace(unit, heading=heading) for unit in found) if heading else found
            header = ""
    return tuple(_with_titles(units))


def is_row(line: str) -> bool:
    """Return whether a line is the row of a table."""
    return CELL_BAR in line and not _is_command(line)


def cells_of(row: str) -> list[str]:
    """Return the cells of a row, also those at its ends that are empty, whose blanks are lost."""
    row = row.strip()
    return f"{' ' * row.startswith('| ')}{row}{' ' * row.endswith(' |')}".split(CELL_BAR)


def is_header(line: str) -> bool:
    """Return whether a row can be a header: one line without a number, other than a year, as a cell."""
    _, *others = cells_of(line)
    return "\n" not in line and not any(_is_figure(cell) and not _YEAR.fullmatch(cell) for cell in others)


def has_header(rows: Sequence[str]) -> bool:
    """Return whether the first of several rows is their header: also "| 2.8 | 3.0", if it alone has an empty corner."""
    corner, *others = cells_of(rows[0])
    is_cornered = not corner and all(map(_is_figure, others)) and all(cells_of(row)[0] for row in rows[1:])
    return is_header(rows[0]) or (is_cornered and len(rows) > _MIN_CORNERED)


def _with_titles(units: Sequence[Unit]) -> Iterator[Unit]:
    """Yield the units, each with the last title or question above it: below the same heading, or in its block."""
    name: Unit | None = None
    names_block = False  #: Whether the name, a question inside a block, is only for the rest of its block.
    for at, unit in enumerate(units):
        is_title = _is_title(units, at)
        is_named = name and name.heading == unit.heading and (name.block == unit.block or not names_block)
        title = name.text if name and is_named else ""
        yield replace(unit, is_title=is_title, title=title) if is_title or title else unit
        if is_title or (unit.kind is UnitKind.SENTENCE and unit.text.endswith("?")):
            name, names_block = unit, not (is_title or _opens_block(units, at))


def _opens_block(units: Sequence[Unit], at: int) -> bool:
    return not at or units[at - 1].block != units[at].block


def _is_title(units: Sequence[Unit], at: int) -> bool:
    """Return whether a unit is one line that names what is below it: a mail's subject, "6. Fees", one in capitals."""
    unit, *following = units[at : at + 2]
    if unit.is_title or not following:
        return unit.is_title
    if len(unit.text) > _MAX_TITLE_LENGTH or ends_as_sentence(unit.text):
        return False
    if following[0].block != unit.block:
        before = units[at - 1] if at else None
        return unit.kind is UnitKind.STEP and not following[0].is_item and not (before and before.is_item)
    is_in_capitals = unit.kind is UnitKind.SENTENCE and unit.text.isupper() and ": " not in unit.text
    return (unit.kind is UnitKind.STEP or is_in_capitals) and following[0].kind is UnitKind.SENTENCE


def _could_be_heading(block: str) -> bool:
    """Return whether a block is one short line that does not end as a sentence and is no item, row or code."""
    short = "\n" not in block and len(block) <= _MAX_HEADING_LENGTH and not ends_as_sentence(block)
    is_content = CELL_BAR in block or _item_kind(block) or _is_figures(block) or _FACT.match(block)
    return short and not is_content and (not _is_code([block]) or _VERSION.fullmatch(block) is not None)


def _units_of_block(block: str, number: int, header: str) -> Iterator[Unit]:
    """Yield the units of a block; `header` is that of a table whose first row is none."""
    lines = [line for line in block.split("\n") if line.strip()]
    if _is_code(lines):
        yield from (Unit(UnitKind.CODE, part, number) for part in _code_parts(block))
        return
    label, start = "", 0
    while start < len(lines):
        is_table = is_row(lines[start])
        end = _end_of_part(lines, start)
        if is_table:
            yield from _rows(lines[start:end], number, label, header)
        else:
            yield from _text(lines[start:end], number)
            label = " ".join(lines[end - 1].split())
        start = end


def _end_of_part(lines: Sequence[str], start: int) -> int:
    """Return the end of the table, or of the other lines, that begin with a line.

    What looks like a command is a row if it has as many cells as the row before it.
    """
    end = start + 1
    if is_row(lines[start]):
        while end < len(lines) and (is_row(lines[end]) or _same_cells(lines[end - 1], lines[end])):
            end += 1
    else:
        while end < len(lines) and not is_row(lines[end]):
            end += 1
    return end


def _same_cells(row: str, line: str) -> bool:
    return row.count(CELL_BAR) == line.count(CELL_BAR)


def _rows(lines: Sequence[str], number: int, label: str, header: str) -> Iterator[Unit]:
    # The first line of several is the header, which chunks repeat when a table is split.
    if not header and len(lines) > 1 and has_header(lines):
        header, lines = lines[0].strip(), lines[1:]
    for line in lines:
        if len(line) <= _MAX_ITEM_LENGTH:
            yield Unit(UnitKind.ROW, line.strip(), number, header=header, label=label)
        else:
            name, *cells = cells_of(line)
            sentences = (sentence for cell in cells for sentence in split_sentences(cell))
            yield from (Unit(UnitKind.SENTENCE, sentence, number, label=name) for sentence in sentences)


def _text(lines: Sequence[str], number: int) -> Iterator[Unit]:
    years = ""
    is_mail = sum(_MAIL_FIELD.match(line) is not None for line in lines) >= _MIN_MAIL_FIELDS
    for kind, text, indent in _nested(_with_items(_joined(lines))):
        if is_mail and _SUBJECT.match(text):
            yield Unit(kind, text, number, is_title=True)
        elif kind is UnitKind.FIGURES:
            yield Unit(kind, text, number, header=years)
        elif kind is UnitKind.SENTENCE or len(text) > _MAX_ITEM_LENGTH:
            first, *others = split_sentences(text)
            yield Unit(kind, first, number, indent=indent)
            yield from (Unit(UnitKind.SENTENCE, part, number) for part in others)
        else:
            yield Unit(kind, text, number, indent=indent)
        if len(_YEAR.findall(text)) >= _MIN_FIGURES and len(text) <= _MAX_HEADING_LENGTH:
            years = text


def _joined(lines: Sequence[str]) -> Iterator[tuple[UnitKind, str, int]]:
    """Yield each list item with its continuation lines, each line of figures, each run of other lines, as one line.

    With each comes the number of blanks before its first line.
    """
    kind, run, indent = UnitKind.SENTENCE, list[str](), 0
    for line in lines:
        starts = _item_kind(line) or (UnitKind.FIGURES if _is_figures(line) else None)
        if run and (starts or kind is UnitKind.FIGURES or _ends_line(run[-1], line)):
            yield kind, " ".join(run), indent
            kind, run = UnitKind.SENTENCE, []
        kind = starts or kind
        indent = indent if run else len(line) - len(line.lstrip())
        run.append(" ".join(line.split()))
    if run:
        yield kind, " ".join(run), indent


def _with_items(joined: Iterable[tuple[UnitKind, str, int]]) -> Iterator[tuple[UnitKind, str, int]]:
    """Yield lines, those with steps in them ("Lost it? 1. Block it. 2. Pay. 3. Wait.") in parts.

    The last step is one sentence.
    """
    for kind, text, indent in joined:
        starts: list[int] = []
        for found in _NUMBER_INSIDE.finditer(text):
            if int(found[1] or found[2]) == len(starts) + 1:
                starts.append(found.start())
        if len(starts) < _MIN_INSIDE:
            yield kind, text, indent
            continue
        if before := text[: starts[0]].strip():
            yield kind, before, indent
        for start, end in pairwise(starts):
            yield UnitKind.STEP, text[start:end].strip(), indent
        last, *others = split_sentences(text[starts[-1] :])
        yield UnitKind.STEP, last, indent
        if others:
            yield UnitKind.SENTENCE, " ".join(others), 0


def _nested(joined: Iterable[tuple[UnitKind, str, int]]) -> Iterator[tuple[UnitKind, str, int]]:
    """Yield lines, of which items below one that ends with a colon have an indent if their signs differ from its own.

    Printed text has no blanks before nested items, but other signs, as dashes below dots.
    """
    above: list[tuple[str, int]] = []  # The sign and indent of each item that announces the next ones.
    for kind, text, indent in joined:
        found = _SIGN.match(text)
        own = (found[0] if found else "", indent)
        if kind not in _ITEMS or any(own[1] != it[1] for it in above):
            above = []
        above = above[: above.index(own)] if own in above else above
        yield kind, text, indent + len(above)
        if kind in _ITEMS and text.endswith(":"):
            above.append(own)


def _ends_line(line: str, following: str) -> bool:
    """Return whether a line break is intended: around a mail's head, or after a short line, as in an address."""
    fields = bool(_MAIL_FIELD.match(line)), bool(_MAIL_FIELD.match(following))
    if any(fields):
        return not all(fields) or _SUBJECT.match(line) is not None or _SUBJECT.match(following) is not None
    return len(line) < _SHORT_LINE and not line.endswith((",", ";", "-")) and following[:1].isupper()


def _item_kind(line: str) -> UnitKind | None:
    if _NUMBERED.match(line):
        return UnitKind.STEP
    return UnitKind.BULLET if _BULLET.match(line) else None


def _is_figures(line: str) -> bool:
    """Return whether a line begins with a name and ends with at least two figures."""
    if len(line) > _MAX_FIGURES_LENGTH:
        return False
    words = line.split()
    last = next((at for at in range(len(words), 0, -1) if not _is_figure(words[at - 1])), 0)
    figures = [word for word in words[last:] if any(map(str.isdigit, word))]
    return last > 0 and len(figures) >= _MIN_FIGURES and not _PHONE.fullmatch(" ".join(figures))


def _is_figure(word: str) -> bool:
    return all(sign.isdigit() or sign in _FIGURE_SIGNS for sign in word)


def _is_code(lines: Sequence[str]) -> bool:
    """Return whether a block is code: commands with flags, or much punctuation, and no line that ends as a sentence."""
    prose_ends = (".", "!", "?") if len(lines) > 1 else (".", "!", "?", ":")
    if any(line.rstrip().endswith(prose_ends) or _item_kind(line) or is_row(line) for line in lines):
        return False
    joined = "".join("".join(line.split()) for line in lines)
    share = sum(char in _SIGNS for char in joined) / len(joined)
    return share >= _CODE_SIGN_SHARE or any(map(_is_command, lines))


def _is_command(line: str) -> bool:
    """Return whether a line is a command: it begins with a prompt, or its first part, before a bar, has flags.

    "-n, --name | The name" is a row of a table of flags.
    """
    first, *others = line.split(CELL_BAR, maxsplit=1)
    is_of_flags = bool(others) and _FIRST_FLAG.match(first) is not None
    return line.startswith("$ ") or (not is_of_flags and _FLAG.search(first) is not None)


def _code_parts(block: str) -> Iterator[str]:
    """Yield a block of code, a long one in parts of about 400 characters that begin at comments where it has them."""
    part: list[str] = []
    for line in block.split("\n"):
        length = sum(map(len, part))
        starts = line.lstrip().startswith(_COMMENTS) and not (part and part[-1].lstrip().startswith(_COMMENTS))
        if part and len(block) > _MAX_CODE_LENGTH and (length + len(line) > _MAX_CODE_LENGTH or starts):
            yield "\n".join(part)
            part = []
        part.append(line)
    yield "\n".join(part)
