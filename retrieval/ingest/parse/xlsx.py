"""Excel workbooks (xlsx, xlsm): values as people see them, read as a stream of events.

No library fits: python-calamine reads no number formats and reserves memory for the rectangle up
to the farthest cell; openpyxl, as a stream, knows no merged cells, fills rows up to the farthest
column, and takes twice as long.
"""

import zipfile
from collections.abc import Iterator
from io import BytesIO
from typing import Final

from retrieval.errors import IngestError
from retrieval.ingest.parse.archive import checked_names
from retrieval.ingest.parse.finish import finished
from retrieval.ingest.parse.grid import CellBudget, Sheet, SheetBuilder
from retrieval.ingest.parse.sheets import blocks_of_sheets, facts_of_sheets
from retrieval.ingest.parse.xlsx_parts import Relations, SharedStrings, Styles, Workbook
from retrieval.ingest.parse.xlsx_sheet import SheetReader
from retrieval.ingest.parse.xml_facts import facts_in
from retrieval.ingest.parse.xml_stream import Handlers, read_events
from retrieval.text.document import ParsedDocument, RawDocument

_ROOT: Final = "_rels/.rels"
_BLOCK_BYTES: Final = 1024 * 1024


def parse_xlsx(raw: RawDocument) -> ParsedDocument:
    """Return the document of an Excel workbook: a section per sheet, formulas by their stored results.

    Hidden sheets are read too, and named in the metadata. Raises IngestError: `too_large` beyond
    `grid.MAX_CELLS` cells, `corrupt`, `encrypted`, `empty`.
    """
    names = checked_names(raw.content)
    with zipfile.ZipFile(BytesIO(raw.content)) as archive:
        reader = _Reader(archive, names)
        sheets = list(reader.sheets())
        facts = reader.facts()
    title = facts.pop("title", "")
    return finished(
        raw,
        source_type="excel",
        blocks=blocks_of_sheets(sheets),
        metadata={**facts, **facts_of_sheets(sheets)},
        property_title=title,
    )


class _Reader:
    def __init__(self, archive: zipfile.ZipFile, names: frozenset[str]) -> None:
        self._archive, self._names = archive, names
        self._root = self._relations(_ROOT, "")
        self._uncalculated = 0

    def sheets(self) -> Iterator[Sheet]:
        part = self._root.by_kind.get("officeDocument", "")
        if part not in self._names:
            raise IngestError("corrupt", "The file is not an Excel workbook.")
        folder, _, name = part.rpartition("/")
        relations = self._relations(f"{folder}/_rels/{name}.rels".lstrip("/"), folder)
        workbook, strings, styles = Workbook(), SharedStrings(), Styles()
        self._read(part, Handlers(start=workbook.start))
        self._read(
            relations.by_kind.get("sharedStrings", ""),
            Handlers(start=strings.start, end=strings.end, text=strings.text),
        )
        self._read(relations.by_kind.get("styles", ""), Handlers(start=styles.start))
        known_styles = styles.styles()
        # Counting the values takes a fraction of reading them.
        CellBudget().take(sum(map(self._values_in, relations.by_id.values())))
        budget = CellBudget()
        for entry in workbook.sheets:
            builder = SheetBuilder(entry.name, budget, is_hidden=entry.is_hidden)
            reader = SheetReader(builder, strings, known_styles, workbook.clock)
            self._read(
                relations.by_id.get(entry.relation, ""),
                Handlers(start=reader.start, end=reader.end, text=reader.text),
            )
            self._uncalculated += reader.uncalculated
            yield reader.sheet()

    def facts(self) -> dict[str, str]:
        """Return what the file's properties say, and how many formulas have no result in it."""
        facts: dict[str, str] = {}
        part = self._root.by_kind.get("core-properties", "")
        if part in self._names:
            with self._archive.open(part) as stream:
                facts = facts_in(stream)
        if self._uncalculated:
            facts["uncalculated_formulas"] = str(self._uncalculated)
        return facts

    def _relations(self, part: str, folder: str) -> Relations:
        relations = Relations(folder)
        self._read(part, Handlers(start=relations.start))
        return relations

    def _values_in(self, part: str) -> int:
        """Return how many values a part holds, or a few less: those across the ends of the blocks read."""
        if part not in self._names:
            return 0
        with self._archive.open(part) as stream:
            return sum(block.count(b"<v>") for block in iter(lambda: stream.read(_BLOCK_BYTES), b""))

    def _read(self, part: str, handlers: Handlers) -> None:
        """Read a part; one that is not there has nothing to say."""
        if part in self._names:
            with self._archive.open(part) as stream:
                read_events(stream, handlers)
