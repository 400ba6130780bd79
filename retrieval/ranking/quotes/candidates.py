"""What can be quoted of passages: units with what they need to be understood, and whole lists and tables. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate, groupby
from typing import Final

from retrieval.engine.types import Passage
from retrieval.ranking.quotes.quantities import Quantity, picked, quantities
from retrieval.text.sentences import ends_as_sentence
from retrieval.text.units import Unit, UnitKind, cells_of, split_units

MAX_CHARACTERS: Final = 650  #: Maximum length of a run of several units.
_MAX_LEAD_IN: Final = 300
#: Lists up to this length are quoted whole or not at all, and tables whole or by rows with a header.
_WHOLE: Final = {UnitKind.BULLET: 300, UnitKind.STEP: 600, UnitKind.ROW: 300}
_MAX_OPENER_WORDS: Final = 2
_CACHED_TEXTS: Final = 1_000


@dataclass(frozen=True)
class Candidate:
    """A run of units of one passage that can be quoted together."""

    passage: Passage
    units: tuple[Unit, ...]  #: All units of the passage.
    run: range  #: Indices of those to quote.
    is_picked: bool = False  #: Whether it is the row of a table that the numbers of the question pick.

    @cached_property
    def quoted(self) -> tuple[Unit, ...]:
        """The units to quote."""
        return self.units[self.run.start : self.run.stop]

    @cached_property
    def text(self) -> str:
        """What is quoted, with the header of rows."""
        return _text_of(self.quoted)

    @property
    def place(self) -> str:
        """What it is below: title, heading path, heading and title in the chunk's text, the line above a table."""
        chunk = self.passage.hit.chunk
        return _place_of(chunk.title, chunk.heading_path, self.quoted[0])

    @property
    def before(self) -> str:
        """The unit before it in its block, to which its pronouns may refer; empty at the start of a block."""
        first = self.run.start
        has_before = first > 0 and self.units[first - 1].block == self.units[first].block
        return self.units[first - 1].text if has_before else ""

    @property
    def is_unfinished(self) -> bool:
        """Whether it is a line that is cut off or announces something, without a figure, a field or a full stop."""
        text = self.quoted[-1].text
        if self.quoted[-1].kind is not UnitKind.SENTENCE or any(map(str.isdigit, text)) or ": " in text:
            return False
        return not ends_as_sentence(text) or text.endswith(":")

    @property
    def kinds(self) -> frozenset[UnitKind]:
        """The kinds of its units."""
        return frozenset(unit.kind for unit in self.quoted)

    @property
    def is_group(self) -> bool:
        """Whether it has several items or rows."""
        return sum(unit.kind in _WHOLE for unit in self.quoted) > 1


def candidates(passages: Sequence[Passage], question: str, language: str) -> tuple[Candidate, ...]:
    """Return what can be quoted of the passages, passage by passage, for a question in a language.

    Of a table with a row that the numbers of the question pick, only this row; no header of figures without them; no
    question, and no sentence without a letter, such as the number of a page.
    """
    found: list[Candidate] = []
    asked = quantities(question, language)
    for passage in passages:
        units = split_units(passage.hit.chunk.text)
        picked_rows = dict(_picked_rows(units, asked, language)) if asked else {}
        decided = frozenset(row for table in picked_rows.values() for row in table)
        headers = {unit.header for unit in units if unit.kind is UnitKind.FIGURES}
        every = (run for run in runs(passage.hit.chunk.text) if units[run.start].text not in headers)
        kept = (run for run in every if decided.isdisjoint(run) and not _says_nothing(units, run))
        found += (Candidate(passage, units, run) for run in kept)
        found += (Candidate(passage, units, range(row, row + 1), is_picked=True) for row in picked_rows)
    return tuple(found)


def _says_nothing(units: Sequence[Unit], run: range) -> bool:
    """Return whether a run ends with a question, or is a sentence without a letter."""
    unit = units[run.stop - 1]
    is_wordless = len(run) == 1 and not any(map(str.isalpha, unit.text))
    return unit.kind is UnitKind.SENTENCE and (is_wordless or unit.text.endswith("?"))


def embedded_texts(title: str, heading_path: Sequence[str], text: str) -> list[str]:
    """Return what the vectors of a chunk's `runs` are made of: each below its place, as chunks are embedded.

    "Ask a week ahead." has no subject without it.
    """
    units = split_units(text)
    return [
        f"{_place_of(title, heading_path, units[run.start])}\n{_text_of(units[run.start : run.stop])}"
        for run in runs(text)
    ]


def _place_of(title: str, heading_path: Sequence[str], unit: Unit) -> str:
    return " > ".join(filter(None, (title, *heading_path, unit.heading, unit.title, unit.label)))


def _text_of(units: Sequence[Unit]) -> str:
    texts: list[str] = []
    for header, group in groupby(units, key=lambda unit: unit.header):
        texts += [header] if header else []
        texts += [unit.text for unit in group]
    return "\n".join(texts)


@lru_cache(maxsize=_CACHED_TEXTS)
def runs(text: str) -> tuple[range, ...]:
    """Return the runs of a text's units that can be quoted: each unit, each short list and table, rows with a header.

    Those are in reading order, but for the rows of short tables, which come last.
    """
    units = split_units(text)
    found: list[range] = []
    first = 0
    while first < len(units):
        stop = _end_of_group(units, first)
        found += (run for run in _runs_of_group(units, first, stop) if _is_quotable(units, run))
        first = stop
    rows = (range(at, at + 1) for at, unit in enumerate(units) if unit.kind is UnitKind.ROW and unit.header)
    return tuple(dict.fromkeys((*found, *rows)))


def _runs_of_group(units: Sequence[Unit], first: int, stop: int) -> Iterator[range]:
    """Yield the runs of a list or table, or of another unit alone."""
    start = _with_lead_in(units, first)
    if _is_opener(units, first):
        yield range(start, stop + 1)
        return
    length = _length(units[first:stop])
    if stop - first == 1 or length <= MAX_CHARACTERS:
        yield range(start, stop)
    elif start < first or units[first].kind is UnitKind.STEP:
        yield range(start, _fitting(units, start, first, stop))
    if stop - first > 1 and length > _WHOLE[units[first].kind]:
        for index in range(first, stop):
            yield range(start if index == first else index, _end_of_item(units, index, stop))


def _is_opener(units: Sequence[Unit], at: int) -> bool:
    """Return whether a sentence says little without the next one, as "Yes." before "The code is on the slip"."""
    unit, *following = units[at : at + 2]
    is_sentence = all(it.kind is UnitKind.SENTENCE and it.block == unit.block for it in (unit, *following))
    is_short = len(unit.text.split()) <= _MAX_OPENER_WORDS and unit.text.endswith((".", "!"))
    return is_short and is_sentence and bool(following) and not following[0].text.endswith(("?", ":"))


def _end_of_item(units: Sequence[Unit], index: int, stop: int) -> int:
    """Return the end of an item with the items nested in it if they are short, or with the code right below it."""
    end = index + 1
    while end < stop and units[end].indent > units[index].indent:
        end += 1
    if end == index + 1:
        return end + (end < stop and units[index].is_item and units[end].kind is UnitKind.CODE)
    return end if _length(units[index:end]) <= MAX_CHARACTERS else index + 1


def _end_of_group(units: Sequence[Unit], first: int) -> int:
    """Return the end of the list or table that begins with a unit; of another unit, its own."""
    stop = first + 1
    if units[first].kind in _WHOLE:
        while stop < len(units) and _is_grouped(units[stop], units[first]):
            stop += 1
    return stop


def _with_lead_in(units: Sequence[Unit], first: int) -> int:
    """Return the index of the sentence that announces a unit, or the unit's own."""
    before = units[first - 1] if first else None
    if before is None or before.kind is UnitKind.ROW or len(before.text) > _MAX_LEAD_IN:
        return first
    announces = before.text.endswith(":") and before.kind is not UnitKind.CODE
    return first - 1 if announces or units[first].kind is UnitKind.CODE else first


def _fitting(units: Sequence[Unit], start: int, first: int, stop: int) -> int:
    """Return the end of a lead-in, if any, and as much of its list or table as is short, at least its first item."""
    ends = accumulate((len(unit.text) + 1 for unit in units[start:stop]), initial=0)
    fitting = sum(1 for length in ends if length <= MAX_CHARACTERS) - 1
    return max(start + fitting, first + 1)


def _is_grouped(unit: Unit, other: Unit) -> bool:
    """Return whether a unit belongs to the list or table of another: code belongs to the list that it is in."""
    if other.kind is UnitKind.ROW:
        return unit.kind is UnitKind.ROW and (unit.block, unit.header) == (other.block, other.header)
    return unit.is_item or unit.kind is UnitKind.CODE


def _length(units: Sequence[Unit]) -> int:
    return sum(len(unit.text) + 1 for unit in units)


def _is_quotable(units: Sequence[Unit], run: range) -> bool:
    """Return whether a run is complete: no title, question or lead-in alone, not cut off at the start of the chunk."""
    unit = units[run.start]
    is_prose = {units[index].kind for index in run} == {UnitKind.SENTENCE}
    if is_prose and run.start == 0 and not unit.heading and unit.text[:1].islower():
        return False
    if len(run) > 1:
        return True
    is_lead_in = unit.text.endswith(":") and run.stop < len(units) and len(unit.text) <= _MAX_LEAD_IN
    return not (unit.is_title or (is_prose and (is_lead_in or unit.text.endswith("?"))))


def passed_over(units: Sequence[Unit], asked: Sequence[Quantity], language: str) -> frozenset[int]:
    """Return the rows of tables of which the numbers of the question pick another row, by their indices."""
    picked_rows = dict(_picked_rows(units, asked, language)) if asked else {}
    return frozenset(row for table in picked_rows.values() for row in table) - picked_rows.keys()


def _picked_rows(
    units: Sequence[Unit], asked: Sequence[Quantity], language: str
) -> Iterator[tuple[int, Sequence[int]]]:
    """Yield each row that the numbers of a question pick, with all rows of its table."""
    for (_, header), group in groupby(range(len(units)), key=lambda at: (units[at].block, units[at].header)):
        table = list(group)
        if header and units[table[0]].kind is UnitKind.ROW:
            row = picked([cells_of(units[at].text) for at in table], cells_of(header), asked, language)
            if row is not None:
                yield table[row], table
