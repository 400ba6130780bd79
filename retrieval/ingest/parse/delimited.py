"""Delimited text (csv, tsv): records as the rows of a sheet."""

import csv
from collections import Counter
from collections.abc import Iterator
from io import StringIO
from itertools import islice
from typing import Final

from retrieval.errors import IngestError
from retrieval.ingest.parse.decoding import charset_of, decode
from retrieval.ingest.parse.finish import finished
from retrieval.ingest.parse.grid import MAX_CELLS, CellBudget, SheetBuilder, kind_of
from retrieval.ingest.parse.sheets import blocks_of_sheets
from retrieval.text.document import ParsedDocument, RawDocument

_DELIMITERS: Final = (",", ";", "\t", "|")
_SAMPLED_CHARACTERS: Final = 65536
_SAMPLED_RECORDS: Final = 100
_MAX_FIELDS: Final = 2 * MAX_CELLS
_MAX_COLUMNS: Final = 16_384
_STATED: Final = "sep="  #: Spreadsheet programs write an unusual delimiter into the first line.


def parse_delimited(raw: RawDocument) -> ParsedDocument:
    """Return a csv or tsv file; rows are numbered by record. Raises IngestError: `too_large`, `encoding`, `empty`."""
    text = decode(raw.content, charset_of(raw.media_type))
    delimiter, text = _delimiter(text)
    if text.count(delimiter) + text.count("\n") > _MAX_FIELDS:
        raise IngestError("too_large", f"The file has more than {_MAX_FIELDS:,} cells, including blank ones.")
    builder = SheetBuilder("", CellBudget())
    try:
        for number, record in enumerate(_reader(text, delimiter), start=1):
            for column, cell in enumerate(record):
                builder.add(number, column, cell.strip(), kind_of(cell))
    except csv.Error as error:
        raise IngestError("too_large", "A cell of the file is too long.") from error
    return finished(raw, source_type="csv", blocks=blocks_of_sheets([builder.built()]))


def _delimiter(text: str) -> tuple[str, str]:
    first, _, rest = text.partition("\n")
    stated = first.strip().lower()
    if stated.startswith(_STATED) and len(stated) == len(_STATED) + 1:
        return stated[-1], rest
    sample = text[:_SAMPLED_CHARACTERS]
    return max(_DELIMITERS, key=lambda delimiter: _fitness(sample, delimiter)), text


def _fitness(sample: str, delimiter: str) -> tuple[float, int]:
    """Return how often a delimiter yields the most frequent number of cells, and that number."""
    try:
        records = [record for record in islice(_reader(sample, delimiter), _SAMPLED_RECORDS) if record]
    except (csv.Error, IngestError):
        return 0, 0
    counts = Counter(len(record) for record in records)
    counts.pop(1, None)
    if not counts:
        return 0, 0
    cells, often = max(counts.items(), key=lambda item: (item[1], item[0]))
    return often / len(records), cells


def _reader(text: str, delimiter: str) -> Iterator[list[str]]:
    return csv.reader(_lines(text, delimiter), delimiter=delimiter)


def _lines(text: str, delimiter: str) -> Iterator[str]:
    for line in StringIO(text, newline=""):
        if line.count(delimiter) >= _MAX_COLUMNS:
            raise IngestError("too_large", f"A row of the file has more than {_MAX_COLUMNS:,} cells.")
        yield line
