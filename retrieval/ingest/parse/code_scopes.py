"""Splitting the lines of a file at its functions and classes, by its syntax tree."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tree_sitter import Node

from retrieval.ingest.parse.code_blocks import (
    MAX_DEPTH,
    MAX_RUN_CHARACTERS,
    MAX_UNIT_CHARACTERS,
    CodeBlocks,
    Scope,
)
from retrieval.ingest.parse.code_languages import LEADS, TRANSPARENT, definition, is_function, last_row, names_of

#: Minimum share of a node's lines for its main part.
_MAIN_SHARE: Final = 0.8


def read_tree(root: Node, blocks: CodeBlocks) -> None:
    """Add the blocks of a file by its syntax tree; every line that is not blank is in exactly one."""
    _TreeReader(blocks).read_scope(_inner(root), 0, len(blocks.lines), Scope(), 0)


@dataclass(frozen=True, slots=True)
class _Segment:
    """The lines `first` to before `end` of a node, with the comments and decorators above it."""

    node: Node
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class _TreeReader:
    blocks: CodeBlocks

    def read_scope(self, nodes: Sequence[Node], first: int, end: int, scope: Scope, depth: int) -> None:
        """Add the lines of one scope, whose syntax is `nodes`: simple statements in runs, the rest separately."""
        run = first
        for segment in _segments(nodes, first, end):
            found = definition(segment.node)
            is_special = found or segment.node.type in TRANSPARENT or self._is_large(segment)
            if is_special and depth < MAX_DEPTH:
                self.blocks.add(run, segment.first, scope)
                self._read_segment(segment, found, scope, depth + 1)
                run = segment.end
            elif self.blocks.characters(run, segment.end) > MAX_RUN_CHARACTERS:
                self.blocks.add(run, segment.first, scope)
                run = segment.first
        self.blocks.add(run, end, scope)

    def _read_segment(self, segment: _Segment, found: Node | None, scope: Scope, depth: int) -> None:
        """Add a definition, or a large statement, as one block or by its parts."""
        inner = _inner(found or segment.node)
        if found:
            # The lines of the definition above its parts open the scope of these.
            first = found.start_point.row
            end = max(first + 1, inner[0].start_point.row) if inner else first + 1
            scope = self.blocks.inside(scope, names_of(found), first, end)
        has_members = not (found and is_function(found)) and any(map(definition, inner))
        if inner and (self._is_large(segment) or has_members):
            self.read_scope(inner, segment.first, segment.end, scope, depth)
        else:
            self.blocks.add(segment.first, segment.end, scope)

    def _is_large(self, segment: _Segment) -> bool:
        return self.blocks.characters(segment.first, segment.end) > MAX_UNIT_CHARACTERS


def _segments(nodes: Sequence[Node], first: int, end: int) -> Iterator[_Segment]:
    """Yield the nodes with the lines from `first` to before `end` divided among them.

    Comments and decorators belong to the node directly below them, a line to the node that begins it, closing brackets
    to the node that they close.
    """
    spans: list[_Segment] = []
    for node in nodes:
        start, stop = node.start_point.row, last_row(node) + 1
        before = spans[-1] if spans else None
        if before and start < before.end:
            spans[-1] = _Segment(before.node, before.first, max(before.end, stop))
        elif before and start == before.end and before.node.type in LEADS:
            spans[-1] = _Segment(node, before.first, stop)
        else:
            spans.append(_Segment(node, start, stop))
    for position, span in enumerate(spans):
        begin = spans[position - 1].end if position else max(first, span.first)
        yield _Segment(span.node, begin, span.end if position + 1 < len(spans) else end)


def _inner(node: Node) -> list[Node]:
    """Return the parts of a node: the members of a class, the statements of a function or block."""
    node = node.child_by_field_name("body") or node
    while True:
        parts = node.named_children
        long_parts = [part for part in parts if last_row(part) > part.start_point.row]
        is_main = len(long_parts) == 1 and _lines_of(long_parts[0]) >= _MAIN_SHARE * _lines_of(node)
        if not is_main or any(map(definition, parts)):
            return parts
        node = long_parts[0]


def _lines_of(node: Node) -> int:
    return last_row(node) - node.start_point.row + 1
