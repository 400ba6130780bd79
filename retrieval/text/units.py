"""Splitting a chunk's text into units that can be quoted: sentences, list items, table rows, code. Pure."""

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
_CACHED_TEXTS: Final = 1_000  #: Several searches and several parts of a search split the same passages.
_SHORT_LINE: Final = 40
_MAX_HEADING_LENGTH: Final = 120
_LOOK_BACK_CHARACTERS: Final = 16  #: Maximum length of an abbreviation with the character before it.
_FLAG: Final = re.compile(r"\s--?[A-Za-z]")
_SIGNS: Final = frozenset("{}[]()<>=;$\\|/_&*#@~^\"'`")
_CODE_SIGN_SHARE: Final = 0.08


class UnitKind(StrEnum):
    """The kind of a unit, which decides how it is quoted."""

    SENTENCE = "sentence"
    BULLET = "bullet"
    STEP = "step"
    ROW = "row"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class Unit:
    """A piece of text that can be quoted."""

    kind: UnitKind
    text: str  #: Verbatim, except that line breaks are spaces outside code.
    block: int  #: Index of its block in the chunk, from 0; a table, a list, a paragraph are blocks.
    header: str = ""  #: The header row of a table row; empty otherwise.
    heading: str = ""  #: The heading above it in the chunk's text; empty before the first one.

    @property
    def is_finished(self) -> bool:
        """Whether it is complete: a sentence with its full stop, or another kind of unit."""
        return self.kind is not UnitKind.SENTENCE or self.text.rstrip(_CLOSING).endswith(_FULL_STOPS)


@lru_cache(maxsize=_CACHED_TEXTS)
def split_units(text: str) -> tuple[Unit, ...]:
    """Return the units of a chunk's text in reading order; a heading is no unit but belongs to the units below it."""
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
    """Return whether a block is one short line that does not end as a sentence and is no item, row or code."""
    short = "\n" not in block and len(block) <= _MAX_HEADING_LENGTH and not block.rstrip(_CLOSING).endswith(_FULL_STOPS)
    return short and not (_CELL_BAR in block or _item_kind(block) or _is_code([block]))


def _units_of_block(block: str, number: int) -> Iterator[Unit]:
    lines = [line for line in block.split("\n") if line.strip()]
    if _is_code(lines):
        yield Unit(UnitKind.CODE, block, number)
    elif all(_CELL_BAR in line for line in lines):
        # The first line of several is the header, which chunks repeat when a table is split.
        header = lines.pop(0).strip() if len(lines) > 1 else ""
        yield from (Unit(UnitKind.ROW, line.strip(), number, header=header) for line in lines)
    else:
        for kind, text in _joined(lines):
            texts = split_sentences(text) if kind is UnitKind.SENTENCE else [text]
            yield from (Unit(kind, part, number) for part in texts)


def _joined(lines: list[str]) -> Iterator[tuple[UnitKind, str]]:
    """Yield each list item with its continuation lines, and each run of other lines, as one line of text."""
    kind, run = UnitKind.SENTENCE, list[str]()
    for line in lines:
        starts = _item_kind(line)
        if run and (starts or _ends_line(run[-1], line)):
            yield kind, " ".join(run)
            kind, run = UnitKind.SENTENCE, []
        kind = starts or kind
        run.append(" ".join(line.split()))
    yield kind, " ".join(run)


def _ends_line(line: str, following: str) -> bool:
    """Return whether a line break is intended: a short line, as in an address, before an upper-case letter."""
    return len(line) < _SHORT_LINE and not line.endswith((",", ";", "-")) and following[:1].isupper()


def _item_kind(line: str) -> UnitKind | None:
    if _NUMBERED.match(line):
        return UnitKind.STEP
    return UnitKind.BULLET if _BULLET.match(line) else None


def split_sentences(text: str) -> list[str]:
    """Return the sentences of one line of text, in order; only the blanks between them are removed."""
    sentences: list[str] = []
    start = 0
    for end in _SENTENCE_END.finditer(text):
        stop = end.start() + len(end[0].rstrip())
        if not continues(text[max(start, stop - _LOOK_BACK_CHARACTERS) : stop], text[end.end() : end.end() + 1]):
            sentences.append(text[start : end.end()].strip())
            start = end.end()
    sentences.append(text[start:].strip())
    return [sentence for sentence in sentences if sentence]


def continues(before: str, after: str) -> bool:
    """Return whether a sentence continues after a full stop, by the last characters before and the first after it."""
    return bool(_ABBREVIATION.search(before)) or after[:1].islower()


def _is_code(lines: list[str]) -> bool:
    """Return whether a block is code: commands with flags, or much punctuation, and no line that ends as a sentence."""
    prose_ends = (".", "!", "?") if len(lines) > 1 else (".", "!", "?", ":")
    if any(line.rstrip().endswith(prose_ends) or _item_kind(line) or _CELL_BAR in line for line in lines):
        return False
    joined = "".join("".join(line.split()) for line in lines)
    share = sum(char in _SIGNS for char in joined) / len(joined)
    return share >= _CODE_SIGN_SHARE or any(_FLAG.search(line) or line.startswith("$ ") for line in lines)
