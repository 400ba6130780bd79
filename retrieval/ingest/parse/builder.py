"""A builder for the blocks of a document during parsing."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from retrieval.ingest.parse.finish import one_line
from retrieval.text.document import Block, BlockKind, Hyperlink

_INDENT = "  "
_MAX_LINKS: Final = 500  #: Maximum links of one block, and maximum characters of a link's text and target.
_MAX_TEXT: Final = 200
_MAX_TARGET: Final = 1000


class BlockBuilder:
    """Blocks in reading order; consecutive list items become one block."""

    def __init__(self) -> None:
        self._blocks: list[Block] = []
        self._items: list[str] = []
        self._links: list[Hyperlink] = []
        self._item_links: list[Hyperlink] = []

    def link(self, text: str, target: str) -> None:
        """Record a link of the next block or list item; one without text or target is ignored."""
        link = Hyperlink(one_line(text), target.strip())
        is_valid = 0 < len(link.text) <= _MAX_TEXT and 0 < len(link.target) <= _MAX_TARGET
        if is_valid and not link.target.startswith("#") and len(self._links) + len(self._item_links) < _MAX_LINKS:
            self._links.append(link)

    def heading(self, text: str, level: int) -> None:
        """Add a heading of `level` 1 to 6 unless it is empty."""
        self._add(Block(BlockKind.HEADING, one_line(text), level=level))

    def paragraph(self, text: str) -> None:
        """Add a paragraph unless it is empty."""
        self._add(Block(BlockKind.PARAGRAPH, text.strip()))

    def code(self, text: str) -> None:
        """Add a code block with its indentation unless it is empty."""
        self._add(Block(BlockKind.CODE, text.strip("\n").rstrip()))

    def item(self, text: str, *, depth: int, marker: str = "") -> None:
        """Add a list item at nesting `depth` (from 0), or a further line of one without a marker."""
        if text.strip():
            self._item_links += self._taken_links()
            lead = _INDENT * depth + (f"{marker} " if marker else _INDENT)
            self._items.append(lead + one_line(text))

    def table(self, rows: Sequence[Sequence[str]], *, has_header: bool) -> None:
        """Add a table with one row per line and bars between cells; empty rows are left out."""
        lines = [" | ".join(map(one_line, row)).strip() for row in rows if any(map(str.strip, row))]
        header = lines[0] if has_header and len(lines) > 1 else ""
        self._add(Block(BlockKind.TABLE, "\n".join(lines), header=header))

    def extend(self, blocks: Sequence[Block]) -> None:
        """Add finished blocks."""
        for block in blocks:
            self._add(block)

    def blocks(self) -> list[Block]:
        """Return all blocks so far."""
        self._close_list()
        return self._blocks

    def _add(self, block: Block) -> None:
        if block.text.strip():
            self._close_list()
            links = self._taken_links()
            self._blocks.append(replace(block, links=links) if links else block)

    def _close_list(self) -> None:
        if self._items:
            self._blocks.append(Block(BlockKind.LIST, "\n".join(self._items), links=tuple(self._item_links)))
            self._items, self._item_links = [], []

    def _taken_links(self) -> tuple[Hyperlink, ...]:
        links, self._links = tuple(self._links), []
        return links
