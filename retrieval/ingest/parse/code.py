"""Source code: functions and the parts of classes as blocks, each with the names of its scopes."""

import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Final

from tree_sitter import Node

from retrieval.errors import IngestError
from retrieval.ingest.parse.code_languages import YAML, Language, language_of, parser_of
from retrieval.ingest.parse.code_scopes import CodeBlocks, Scope, read_keys, read_tree
from retrieval.ingest.parse.decoding import charset_of, decode
from retrieval.ingest.parse.finish import cleaned
from retrieval.text.document import Block, ParsedDocument, RawDocument

#: A longer line is data or generated, and is cut.
_MAX_LINE_CHARACTERS: Final = 2_000
#: A tree needs about fifty times the memory of its text; a larger file is generated and read without its grammar.
_MAX_GRAMMAR_CHARACTERS: Final = 1_000_000
#: A file with a larger share of errors is not in the language of its name.
_MAX_ERRORS: Final = 0.3
_STATEMENT: Final = re.compile("statement$|definition$|declaration$|_item$")
_GENERIC_NAMES: Final = frozenset({"__init__", "index", "mod", "main", "setup"})
_CUT: Final = " …"


def parse_code(raw: RawDocument) -> ParsedDocument:
    """Return a file of code with unchanged lines, cut at 2,000 characters; raise IngestError `empty`."""
    lines = cleaned(decode(raw.content, charset_of(raw.media_type)).replace("\f", " ").replace("\v", " ")).split("\n")
    cut = 0
    for number, line in enumerate(lines):
        if len(line) > _MAX_LINE_CHARACTERS:
            lines[number] = line[:_MAX_LINE_CHARACTERS] + _CUT
            cut += 1
    language = language_of(raw.name)
    blocks = _blocks(lines, language)
    if not blocks:
        raise IngestError("empty", "There is no text in the file.")
    name = language.name if isinstance(language, Language) else language
    facts = {"programming_language": name, "cut_lines": str(cut or "")}
    return ParsedDocument(
        title=_title(raw.name),
        blocks=tuple(blocks),
        source_type="code",
        metadata={key: value for key, value in facts.items() if value},
    )


def _blocks(lines: list[str], language: Language | str) -> Sequence[Block]:
    blocks = CodeBlocks(lines)
    root = _tree("\n".join(lines), language) if isinstance(language, Language) else None
    if root:
        read_tree(root, blocks)
    elif language == YAML:
        read_keys(blocks)
    else:
        first = 0
        for number, line in enumerate(blocks.lines):
            if not line.strip():
                blocks.add(first, number, Scope())
                first = number
        blocks.add(first, len(blocks.lines), Scope())
    return blocks.found


def _tree(text: str, language: Language) -> Node | None:
    """Return the syntax tree of a text, None if it is too large or not in that language."""
    if len(text) > _MAX_GRAMMAR_CHARACTERS:
        return None
    content = text.encode()
    root = parser_of(language).parse(content).root_node
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
