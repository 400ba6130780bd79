"""Code that is read without a grammar: blank lines tell its parts apart, in YAML the keys by their indentation."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from retrieval.ingest.parse.code_blocks import (
    MAX_DEPTH,
    MAX_RUN_CHARACTERS,
    MAX_UNIT_CHARACTERS,
    CodeBlocks,
    Scope,
)

_KEY: Final = re.compile(r"""\s*("[^"]*"|'[^']*'|[^\s#\-"'][^#]*?)(?<=\S)\s*+:(?:\s|$)""")
_MAX_NAME_CHARACTERS: Final = 100


def read_paragraphs(blocks: CodeBlocks) -> None:
    """Add what stands between blank lines as blocks."""
    first = 0
    for number, line in enumerate(blocks.lines):
        if not line.strip():
            blocks.add(first, number, Scope())
            first = number
    blocks.add(first, len(blocks.lines), Scope())


def read_keys(blocks: CodeBlocks) -> None:
    """Add the entries of YAML as blocks, those of a large one by one under its key."""
    _read(blocks, 0, 0, len(blocks.lines), Scope(), 0)


def _read(blocks: CodeBlocks, first: int, body: int, end: int, scope: Scope, depth: int) -> None:
    """Add the lines from `first` to before `end`, whose entries start at `body`."""
    run = first
    for begin, key, stop in _entries(blocks.lines, body, end):
        name = _name(blocks.lines[key])
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
    """Yield the entries on the outermost column: first line with the comments above it, own line, line behind the last.

    Items of a list count only where there are no keys: under a key they may stand on the key's own column.
    """
    full = [number for number in range(first, end) if _is_entry(lines[number])]
    column = min((_column(lines[number]) for number in full), default=0)
    outermost = [number for number in full if _column(lines[number]) == column]
    keys = [number for number in outermost if not lines[number].lstrip().startswith("-")] or outermost
    begins = [_with_comments(lines, key, first) for key in keys]
    # Nothing but comments has no entry, and then one end too many.
    yield from zip(begins, keys, [*begins[1:], end], strict=False)


def _with_comments(lines: Sequence[str], key: int, first: int) -> int:
    """Return where the comments begin that stand right above a line."""
    while key > first and lines[key - 1].lstrip().startswith("#"):
        key -= 1
    return key


def _is_entry(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _column(line: str) -> int:
    return len(line) - len(line.lstrip())


def _name(line: str) -> str:
    found = _KEY.match(line)
    return found[1].strip("\"'")[:_MAX_NAME_CHARACTERS] if found else ""
