"""Blocks of sheets: a heading per sheet, tables with headers, labels with values, notes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from retrieval.ingest.parse import regions
from retrieval.ingest.parse.finish import finished, one_line
from retrieval.ingest.parse.grid import TEXT, Row, Sheet
from retrieval.text.document import Block, BlockKind, ParsedDocument, RawDocument

_SHEET_LEVEL: Final = 2  #: Level 1 would make the first sheet's name the document's title.
_REGION_LEVEL: Final = 3
_MAX_TITLE_LENGTH: Final = 120
_MAX_ROWS: Final = 1000  #: Tables with more rows are split, to limit the cost of a block.
#: A wider header is split into groups of columns, each with the first column, so that chunks can repeat their header.
_MAX_HEADER_WIDTH: Final = 400
_MAX_NAME_LENGTH: Final = 160


def blocks_of_sheets(sheets: Iterable[Sheet]) -> Iterator[Block]:
    """Yield the blocks of the sheets that are not empty, each below a heading with its name."""
    for sheet in sheets:
        if sheet.rows and sheet.name:
            yield Block(BlockKind.HEADING, one_line(sheet.name), level=_SHEET_LEVEL)
        if sheet.rows:
            yield from _SheetReader(sheet).blocks()


def workbook_document(raw: RawDocument, sheets: Sequence[Sheet], facts: Mapping[str, str]) -> ParsedDocument:
    """Return the document of a workbook with these properties; its metadata name all sheets and the hidden ones."""
    metadata = {
        **{name: fact for name, fact in facts.items() if name != "title"},
        "sheets": ", ".join(sheet.name for sheet in sheets),
        "hidden_sheets": ", ".join(sheet.name for sheet in sheets if sheet.is_hidden),
    }
    blocks, title = blocks_of_sheets(sheets), facts.get("title", "")
    return finished(raw, source_type="excel", blocks=blocks, metadata=metadata, property_title=title)


class _SheetReader:
    def __init__(self, sheet: Sheet) -> None:
        self._sheet = sheet
        self._header: regions.Header | None = None

    def blocks(self) -> Iterator[Block]:
        found = list(regions.regions(self._sheet.rows))
        for rows, following in zip(found, [*found[1:], []], strict=True):
            if len(rows) > 1 or len(rows[0].columns) > 1:
                yield from self._region(rows)
            elif following:
                # A single text is the heading of the next region.
                yield from self._titles(rows, regions.columns_of(following)[0])
            else:
                yield from _lines(rows)

    def _region(self, rows: Sequence[Row]) -> Iterator[Block]:
        titles = regions.title_rows(rows)
        body = rows[titles:]
        count = regions.header_rows(self._sheet, body)
        columns = regions.columns_of(body)
        yield from self._titles(rows[:titles], columns[0])
        if count:
            self._header = regions.header_of(self._sheet, body, count)
            yield from _table(self._header, body[count:])
        elif self._header is not None and (shared := regions.continued(self._header, body)):
            yield from _table(shared, body)
        elif len(columns) == 1 or regions.are_pairs(body):
            yield from _lines(body)
        else:
            yield from _table(regions.Header(tuple(columns), ("",) * len(columns)), body)

    def _titles(self, rows: Sequence[Row], first_column: int) -> Iterator[Block]:
        """Yield the texts above a region, the first as its heading unless it is further right."""
        if not rows:
            return
        text = one_line(rows[0].texts[0])
        if rows[0].kinds[0] == TEXT and len(text) <= _MAX_TITLE_LENGTH and rows[0].columns[0] <= first_column + 1:
            yield Block(BlockKind.HEADING, text, level=_REGION_LEVEL, row=rows[0].number)
            rows = rows[1:]
        yield from _lines(rows)


def _lines(rows: Sequence[Row]) -> Iterator[Block]:
    for start in range(0, len(rows), _MAX_ROWS):
        part = rows[start : start + _MAX_ROWS]
        yield Block(BlockKind.LIST, "\n".join(map(_line, part)), row=part[0].number)


def _line(row: Row) -> str:
    texts = [one_line(text) for text in row.texts]
    return texts[0] if len(texts) == 1 else f"{texts[0].rstrip(' :')}: {texts[1]}"


def _with_one_label(header: regions.Header, rows: Sequence[Row]) -> tuple[regions.Header, list[Row]]:
    """Return the table with its first column and the unnamed ones after it, an outline, joined to one."""
    steps = 1
    while steps < len(header.columns) and not header.names[steps] and header.columns[steps] not in header.figures:
        steps += 1
    if steps == 1 or steps == len(header.columns):
        return header, list(rows)
    first, last = header.columns[0], header.columns[steps - 1]
    names = (header.names[0], *header.names[steps:])
    return regions.Header((first, *header.columns[steps:]), names), [
        _with_joined_labels(row, first, last) for row in rows
    ]


def _with_joined_labels(row: Row, first: int, last: int) -> Row:
    labels = row.between(first, last)
    rest = row.between(last + 1, row.columns[-1])
    if labels.columns:
        rest.insert(first, " ".join(labels.texts), labels.kinds[0])
    return rest


def _table(header: regions.Header, rows: Sequence[Row]) -> Iterator[Block]:
    header, rows = _with_one_label(header, rows)
    groups = list(_groups(header))
    if any(len(name) > _MAX_NAME_LENGTH for name in header.names):
        yield Block(BlockKind.LIST, "\n".join(f"- {one_line(name)}" for name in header.names if name))
    for start in range(0, len(rows), _MAX_ROWS):
        part = rows[start : start + _MAX_ROWS]
        yield from (_table_block(group, part) for group in groups)


def _groups(header: regions.Header) -> Iterator[regions.Header]:
    """Yield the columns of a wide table in groups that start with its first column."""
    group: list[int] = []
    width = 0
    for place, name in enumerate(header.names):
        size = min(len(name), _MAX_NAME_LENGTH) + len(" | ")
        if len(group) > 1 and width + size > _MAX_HEADER_WIDTH:
            yield _group(header, group)
            group, width = [0], min(len(header.names[0]), _MAX_NAME_LENGTH)
        group.append(place)
        width += size
    yield _group(header, group)


def _group(header: regions.Header, places: Sequence[int]) -> regions.Header:
    names = (one_line(header.names[place]) for place in places)
    return regions.Header(
        tuple(header.columns[place] for place in places),
        tuple(it if len(it) <= _MAX_NAME_LENGTH else f"{it[: _MAX_NAME_LENGTH - 1].rstrip()}…" for it in names),
    )


def _table_block(header: regions.Header, rows: Sequence[Row]) -> Block:
    names = _joined(header.names) if any(header.names) else ""
    lines = [_joined([one_line(row.text_at(column)) for column in header.columns]) for row in rows]
    return Block(BlockKind.TABLE, "\n".join([names, *lines] if names else lines), header=names, row=rows[0].number)


def _joined(cells: Sequence[str]) -> str:
    return " | ".join(cells).rstrip(" |") if any(cells) else "|"
