"""Source code: functions and the parts of classes as blocks, each with the names of its scopes.

Code is split by its syntax tree, or without a grammar by blank lines or by the keys of YAML.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import PurePosixPath
from typing import Final

from tree_sitter import Node

from retrieval.errors import IngestError
from retrieval.ingest.parse import code_languages
from retrieval.ingest.parse.decoding import charset_of, decode
from retrieval.ingest.parse.finish import cleaned
from retrieval.text.document import Block, BlockKind, ParsedDocument, RawDocument

_MAX_LINE_CHARACTERS: Final = 2_000  #: A longer line is data or generated, and is cut.
#: A tree needs about fifty times the memory of its text; a larger file is generated and read without its grammar.
_MAX_GRAMMAR_CHARACTERS: Final = 1_000_000
_MAX_ERRORS: Final = 0.3  #: A file with a larger share of errors is not in the language of its name.
_STATEMENT: Final = re.compile("statement$|definition$|declaration$|_item$")
_GENERIC_NAMES: Final = frozenset({"__init__", "index", "mod", "main", "setup"})
MAX_RUN_CHARACTERS: Final = 800  #: Maximum size of a block of consecutive statements (about 200 tokens).
MAX_UNIT_CHARACTERS: Final = 1_600  #: A longer function or statement is split between the statements in it.
MAX_DEPTH: Final = 16  #: Deeper definitions belong to the text of the enclosing one.
_MAX_OPENING_CHARACTERS: Final = 200
_KEY: Final = re.compile(r"""\s*("[^"]*"|'[^']*'|[^\s#\-"'][^#]*?)(?<=\S)\s*+:(?:\s|$)""")
_MAX_NAME_CHARACTERS: Final = 100
_MAIN_SHARE: Final = 0.8


def parse_code(raw: RawDocument) -> ParsedDocument:
    """Return a file of code with unchanged lines, cut at 2,000 characters; raise IngestError `empty`."""
    lines = cleaned(decode(raw.content, charset_of(raw.media_type)).replace("\f", " ").replace("\v", " ")).split("\n")
    cut = 0
    for number, line in enumerate(lines):
        if len(line) > _MAX_LINE_CHARACTERS:
            lines[number] = line[:_MAX_LINE_CHARACTERS] + " …"
            cut += 1
    language = code_languages.language_of(raw.name)
    blocks = _blocks(lines, language)
    if not blocks:
        raise IngestError("empty", "There is no text in the file.")
    name = language.name if isinstance(language, code_languages.Language) else language
    facts = {"programming_language": name, "cut_lines": str(cut or "")}
    return ParsedDocument(
        title=_title(raw.name),
        blocks=tuple(blocks),
        source_type="code",
        metadata={key: value for key, value in facts.items() if value},
    )


def _blocks(lines: list[str], language: code_languages.Language | str) -> Sequence[Block]:
    blocks = _CodeBlocks(lines)
    root = _tree("\n".join(lines), language) if isinstance(language, code_languages.Language) else None
    if root:
        _TreeReader(blocks).read_scope(_inner(root), 0, len(blocks.lines), _Scope(), 0)
    elif language == code_languages.YAML:
        _read(blocks, 0, 0, len(blocks.lines), _Scope(), 0)
    else:
        first = 0
        for number, line in enumerate(blocks.lines):
            if not line.strip():
                blocks.add(first, number, _Scope())
                first = number
        blocks.add(first, len(blocks.lines), _Scope())
    return blocks.found


def _tree(text: str, language: code_languages.Language) -> Node | None:
    """Return the syntax tree of a text, None if it is too large or not in that language."""
    if len(text) > _MAX_GRAMMAR_CHARACTERS:
        return None
    content = text.encode()
    root = code_languages.parser_of(language).parse(content).root_node
    return root if _error_bytes(root) <= _MAX_ERRORS * len(content) else None


def _error_bytes(root: Node) -> int:
    """Return how many bytes the grammar could not read; complete statements in an error count as read."""
    waiting, found = [root], 0
    while waiting:
        node = waiting.pop()
        if node.is_error:
            read = (part for part in node.named_children if _STATEMENT.search(part.type) and not part.has_error)
            found += _size(node) - sum(map(_size, read))
        elif node.has_error:
            waiting.extend(node.children)
    return found


def _size(node: Node) -> int:
    return node.end_byte - node.start_byte


def _title(name: str) -> str:
    path = PurePosixPath(name.replace("\\", "/"))
    is_generic = path.stem in _GENERIC_NAMES and path.parent.name
    return f"{path.parent.name}/{path.name}" if is_generic else path.name or "Untitled"


@dataclass(frozen=True, slots=True)
class _Scope:
    names: tuple[str, ...] = ()
    openings: tuple[tuple[int, str], ...] = ()  #: Each with its line number, from 0.

    def header(self, first: int, line: str) -> str:
        above = [text for row, text in self.openings if row < first]
        indentation = line[: len(line) - len(line.lstrip())]
        return "\n".join((*above, indentation + "…")) if above else ""


class _CodeBlocks:
    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.found: list[Block] = []
        self._offsets = [0, *accumulate(len(line) + 1 for line in lines)]

    def add(self, first: int, end: int, scope: _Scope) -> None:
        while first < end and not self.lines[first].strip():
            first += 1
        while first < end and not self.lines[end - 1].strip():
            end -= 1
        if first < end:
            text = "\n".join(self.lines[first:end]).rstrip()
            header = scope.header(first, self.lines[first])
            self.found.append(Block(BlockKind.CODE, text, header=header, row=first + 1, path=scope.names))

    def characters(self, first: int, end: int) -> int:
        """Return the number of characters of the lines from `first` to before `end`."""
        return self._offsets[end] - self._offsets[first]

    def inside(self, scope: _Scope, names: Sequence[str], first: int, end: int) -> _Scope:
        """Return the scope that the lines from `first` to before `end` open in another one."""
        opening = "\n".join(self.lines[first:end]).rstrip()
        if len(opening) > _MAX_OPENING_CHARACTERS:
            opening = self.lines[first].rstrip()[:_MAX_OPENING_CHARACTERS]
        return _Scope((*scope.names, *names), (*scope.openings, (first, opening)))


def _read(blocks: _CodeBlocks, first: int, body: int, end: int, scope: _Scope, depth: int) -> None:
    """Add the lines from `first` to before `end`, whose entries start at `body`."""
    run = first
    for begin, key, stop in _entries(blocks.lines, body, end):
        found = _KEY.match(blocks.lines[key])
        name = found[1].strip("\"'")[:_MAX_NAME_CHARACTERS] if found else ""
        inside = blocks.inside(scope, [name], key, key + 1) if name else scope
        is_large = blocks.characters(begin, stop) > MAX_UNIT_CHARACTERS and depth < MAX_DEPTH
        is_long = any(map(str.strip, blocks.lines[key + 1 : stop]))
        if is_long and (name or is_large):
            blocks.add(run, begin, scope)
            if is_large:
                _read(blocks, begin, key + 1, stop, inside, depth + 1)
            else:
                blocks.add(begin, stop, inside)
            run = stop
        elif blocks.characters(run, stop) > MAX_RUN_CHARACTERS:
            blocks.add(run, begin, scope)
            run = begin
    blocks.add(run, end, scope)


def _entries(lines: Sequence[str], first: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield the entries in the leftmost column: first line of the comments above it, its line, line after its last.

    Items of a list count only if there are no keys: under a key they may have the key's column.
    """
    full = [it for it in range(first, end) if lines[it].strip() and not lines[it].lstrip().startswith("#")]
    column = min((_column(lines[number]) for number in full), default=0)
    outermost = [number for number in full if _column(lines[number]) == column]
    keys = [number for number in outermost if not lines[number].lstrip().startswith("-")] or outermost
    begins = [_with_comments(lines, key, first) for key in keys]
    # Lines of only comments have no entry, and then one end too many.
    yield from zip(begins, keys, [*begins[1:], end], strict=False)


def _with_comments(lines: Sequence[str], key: int, first: int) -> int:
    while key > first and lines[key - 1].lstrip().startswith("#"):
        key -= 1
    return key


def _column(line: str) -> int:
    return len(line) - len(line.lstrip())


@dataclass(frozen=True, slots=True)
class _Segment:
    node: Node
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class _TreeReader:
    blocks: _CodeBlocks

    def read_scope(self, nodes: Sequence[Node], first: int, end: int, scope: _Scope, depth: int) -> None:
        run = first
        for segment in _segments(nodes, first, end):
            found = code_languages.definition(segment.node)
            is_special = found or segment.node.type in code_languages.TRANSPARENT or self._is_large(segment)
            if is_special and depth < MAX_DEPTH:
                self.blocks.add(run, segment.first, scope)
                self._read_segment(segment, found, scope, depth + 1)
                run = segment.end
            elif self.blocks.characters(run, segment.end) > MAX_RUN_CHARACTERS:
                self.blocks.add(run, segment.first, scope)
                run = segment.first
        self.blocks.add(run, end, scope)

    def _read_segment(self, segment: _Segment, found: Node | None, scope: _Scope, depth: int) -> None:
        inner = _inner(found or segment.node)
        if found:
            # The lines of the definition above its parts open the scope of these.
            first = found.start_point.row
            end = max(first + 1, inner[0].start_point.row) if inner else first + 1
            scope = self.blocks.inside(scope, code_languages.names_of(found), first, end)
        has_members = not (found and code_languages.is_function(found)) and any(map(code_languages.definition, inner))
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
        start, stop = node.start_point.row, code_languages.last_row(node) + 1
        before = spans[-1] if spans else None
        if before and start < before.end:
            spans[-1] = _Segment(before.node, before.first, max(before.end, stop))
        elif before and start == before.end and before.node.type in code_languages.LEADS:
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
        long_parts = [part for part in parts if code_languages.last_row(part) > part.start_point.row]
        is_main = len(long_parts) == 1 and _lines_of(long_parts[0]) >= _MAIN_SHARE * _lines_of(node)
        if not is_main or any(map(code_languages.definition, parts)):
            return parts
        node = long_parts[0]


def _lines_of(node: Node) -> int:
    return code_languages.last_row(node) - node.start_point.row + 1
