"""Cutting a chunk's text into what can be quoted on its own: sentences, list items, table rows, code. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise
from typing import Final

_BLANK_LINE: Final = re.compile(r"\n[ \t]*\n")
_BULLET: Final = re.compile(r"\s*[-*•–]\s+\S")  # noqa: RUF001 -- an en dash is a bullet too
_NUMBERED: Final = re.compile(r"\s*(?:\d{1,3}|[a-z])[.)]\s+\S")
_CELL_BAR: Final = " | "
_FULL_STOPS: Final = (".", "!", "?", "…", ":", "。", "！", "？", "।")  # noqa: RUF001 -- other scripts' full stops
_CLOSING: Final = "\"'”’»)]"  # noqa: RUF001 -- typographic quotation marks
_SENTENCE_END: Final = re.compile(r"(?:(?<![.!?…])[.!?…]++[\"'”’»)\]]*+\s+|[。！？।]+\s*)")  # noqa: RUF001 -- other scripts' full stops
_ABBREVIATION: Final = re.compile(
    r"(?:^|[\s(])(?:[A-Z]|(?i:e\.g|i\.e|etc|cf|vs|approx|ca|nos?|figs?|eq|sec|pp?|vol|mr|mrs|ms|dr|prof|st|inc|ltd|co))\.$"
)
#: A passage that answers one question is found again by the next, and is read by several parts of a search.
_KEPT_TEXTS: Final = 1_000
_SHORT_LINE: Final = 40
_MAX_HEADING_LENGTH: Final = 120
#: No abbreviation is longer, with what stands before it.
_LOOK_BACK_CHARACTERS: Final = 16
_FLAG: Final = re.compile(r"\s--?[A-Za-z]")
_SIGNS: Final = frozenset("{}[]()<>=;$\\|/_&*#@~^\"'`")
_CODE_SIGN_SHARE: Final = 0.08


class UnitKind(StrEnum):
    """What a unit is, which decides how it is quoted."""

    SENTENCE = "sentence"
    BULLET = "bullet"
    STEP = "step"
    ROW = "row"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class Unit:
    """A piece of text that can be quoted."""

    kind: UnitKind
    #: Verbatim but for line breaks, which are spaces in all but code.
    text: str
    #: Which block of the chunk it stands in, from 0; a table, a list, a paragraph are blocks.
    block: int
    #: The header row of a table row; empty otherwise.
    header: str = ""
    #: The heading in the chunk's text that it stands under; empty before the first one.
    heading: str = ""

    @property
    def is_finished(self) -> bool:
        """Whether it is whole: a sentence with its full stop, or anything that is no sentence."""
        return self.kind is not UnitKind.SENTENCE or self.text.rstrip(_CLOSING).endswith(_FULL_STOPS)


@lru_cache(maxsize=_KEPT_TEXTS)
def split_units(text: str) -> tuple[Unit, ...]:
    """Return the units of a chunk's text in reading order; headings are not units but stand with what is under them."""
    blocks = [block.strip("\n") for block in _BLANK_LINE.split(text) if block.strip()]
    units: list[Unit] = []
    heading = ""
    for number, (block, following) in enumerate(pairwise((*blocks, ""))):
        if _could_be_heading(block) and following and not _could_be_heading(following):
            heading = " ".join(block.split())
        else:
            units += [replace(unit, heading=heading) for unit in _units_of_block(block, number)]
    return tuple(units)


def _could_be_heading(block: str) -> bool:
    """Return whether a block is one short line that neither ends as a sentence nor looks like anything else."""
    short = "\n" not in block and len(block) <= _MAX_HEADING_LENGTH and not block.rstrip(_CLOSING).endswith(_FULL_STOPS)
    return short and not (_CELL_BAR in block or _item_kind(block) or _is_code([block]))


def _units_of_block(block: str, number: int) -> Iterator[Unit]:
    lines = [line for line in block.split("\n") if line.strip()]
    if _is_code(lines):
        yield Unit(UnitKind.CODE, block, number)
    elif all(_CELL_BAR in line for line in lines):
        yield from _rows(lines, number)
    else:
        yield from _prose_and_items(lines, number)


def _rows(lines: list[str], number: int) -> Iterator[Unit]:
    """Yield a table's rows; the first line of several is the header, which chunks repeat when a table is split."""
    if len(lines) == 1:
        yield Unit(UnitKind.ROW, lines[0].strip(), number)
    for line in lines[1:]:
        yield Unit(UnitKind.ROW, line.strip(), number, header=lines[0].strip())


def _prose_and_items(lines: list[str], number: int) -> Iterator[Unit]:
    """Yield sentences, and list items with the lines that continue them."""
    for kind, text in _joined(lines):
        if kind is UnitKind.SENTENCE:
            yield from (Unit(kind, sentence, number) for sentence in split_sentences(text))
        else:
            yield Unit(kind, text, number)


def _joined(lines: list[str]) -> Iterator[tuple[UnitKind, str]]:
    """Yield each item, and each run of lines without one, as one line of text."""
    kind, held = UnitKind.SENTENCE, list[str]()
    for line in lines:
        starts = _item_kind(line)
        if held and (starts or _ends_line(held[-1], line)):
            yield kind, " ".join(held)
            kind, held = UnitKind.SENTENCE, []
        kind = starts or kind
        held.append(" ".join(line.split()))
    yield kind, " ".join(held)


def _ends_line(line: str, following: str) -> bool:
    """Return whether a line break is meant: a short line as of a heading or an address, before a new beginning."""
    return len(line) < _SHORT_LINE and not line.endswith((",", ";", "-")) and following[:1].isupper()


def _item_kind(line: str) -> UnitKind | None:
    if _NUMBERED.match(line):
        return UnitKind.STEP
    return UnitKind.BULLET if _BULLET.match(line) else None


def split_sentences(text: str) -> list[str]:
    """Return the sentences of one line of text, in order and with nothing but the blanks between them lost."""
    sentences: list[str] = []
    start = 0
    for end in _SENTENCE_END.finditer(text):
        stop = end.start() + len(end[0].rstrip())
        if not goes_on(text[max(start, stop - _LOOK_BACK_CHARACTERS) : stop], text[end.end() : end.end() + 1]):
            sentences.append(text[start : end.end()].strip())
            start = end.end()
    sentences.append(text[start:].strip())
    return [sentence for sentence in sentences if sentence]


def goes_on(before: str, after: str) -> bool:
    """Return whether a full stop is part of an abbreviation, or a lower-case word follows it.

    The last characters before the stop and the first one after it are enough.
    """
    return bool(_ABBREVIATION.search(before)) or after[:1].islower()


def _is_code(lines: list[str]) -> bool:
    """Return whether a block reads as code: commands with flags, or many signs, and no line that ends as a sentence."""
    prose_ends = (".", "!", "?") if len(lines) > 1 else (".", "!", "?", ":")
    if any(line.rstrip().endswith(prose_ends) or _item_kind(line) or _CELL_BAR in line for line in lines):
        return False
    joined = "".join("".join(line.split()) for line in lines)
    share = sum(sign in _SIGNS for sign in joined) / len(joined)
    return share >= _CODE_SIGN_SHARE or any(_FLAG.search(line) or line.startswith("$ ") for line in lines)
