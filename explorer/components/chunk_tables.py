"""The tables in the text of a chunk, where cells are separated by bars, and the rows of a hit that match its query."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Final

from django.conf import settings

from corecube.scope import ConnectionFacts
from explorer.components.snippets import Segment, Stem, highlight
from retrieval.engine.types import Hit
from retrieval.engine.words import stemmer
from retrieval.text.units import cells_of, has_header, is_row

_MAX_ROWS: Final = 3  #: Of a hit.
_MIN_SHARE: Final = 0.5  #: Share of a snippet's characters in complete rows from which they are shown as a table.

Cell = tuple[Segment, ...]
Row = tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table; each cell is a text in segments."""

    header: Row  #: Empty if the first row is none.
    rows: tuple[Row, ...]


def text_and_tables(text: str) -> tuple[str | Table, ...]:
    """Return a chunk's text in order, its tables apart; a table has two rows at least."""
    return tuple(_plain(table) if isinstance(table, list) else table for table in _parts(text))


def hit_table(hit: Hit, connection: ConnectionFacts, snippet: Sequence[Segment]) -> Table | None:
    """Return the rows that match best of the table that a hit's snippet consists of; None for a snippet of text."""
    shown = "".join(segment.text for segment in snippet)
    stem = stemmer(connection.language or settings.CORECUBE_TEXT_SEARCH_CONFIG)
    for lines in (it for it in _parts(hit.chunk.text) if isinstance(it, list)):
        header, body = _split(lines)
        inside = [" ".join(line.split()) in shown for line in body]
        if sum(len(line) for line, is_in in zip(body, inside, strict=True) if is_in) >= _MIN_SHARE * len(shown):
            order = sorted(range(len(body)), key=lambda at: (-_weight(body[at], hit, stem), not inside[at], at))
            lexemes = [match.lexeme for match in hit.matches]
            rows = (
                map(partial(highlight, lexemes=lexemes, stem=stem), _cells(body[at]))
                for at in sorted(order[:_MAX_ROWS])
            )
            return Table(_plain_row(header), tuple(map(tuple, rows)))
    return None


def _weight(line: str, hit: Hit, stem: Stem) -> float:
    """Return the idf sum of the query's terms in a row."""
    found = (it for it in hit.matches if any(piece.matched for piece in highlight(line, [it.lexeme], stem=stem)))
    return sum(it.idf for it in found)


def _parts(text: str) -> Iterator[str | list[str]]:
    """Yield the texts and the lines of each table."""
    loose: list[str] = []
    for is_table, group in groupby(text.split("\n"), key=is_row):
        lines = list(group)
        if not is_table or len(lines) == 1:
            loose += lines
            continue
        if said := "\n".join(loose).strip("\n"):
            yield said
        loose = []
        yield lines
    if said := "\n".join(loose).strip("\n"):
        yield said


def _split(lines: list[str]) -> tuple[str, list[str]]:
    return (lines[0], lines[1:]) if has_header(lines) else ("", lines)


def _plain(lines: list[str]) -> Table:
    header, body = _split(lines)
    return Table(_plain_row(header), tuple(map(_plain_row, body)))


def _plain_row(line: str) -> Row:
    return tuple((Segment(cell),) for cell in _cells(line)) if line else ()


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in cells_of(line)]
