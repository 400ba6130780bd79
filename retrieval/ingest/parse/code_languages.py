"""The programming languages with a grammar, and the node types of their syntax trees."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import PurePosixPath
from typing import Any, Final

from tree_sitter import Language as Grammar
from tree_sitter import Node, Parser

from corecube.data import read_toml

YAML: Final = "yaml"
_TABLES: Final[Mapping[str, Any]] = read_toml("retrieval.ingest.parse", "code_languages.toml")
_BY_NAME: Final[Mapping[str, str]] = _TABLES["names"]
CODE_NAMES: Final = frozenset(_BY_NAME)
#: Languages without a grammar, by suffix.
PLAIN_LANGUAGES: Final = {suffix: name for name, suffixes in _TABLES["plain"].items() for suffix in suffixes.split()}
_NODES: Final = {kind: frozenset[str](names) for kind, names in _TABLES["nodes"].items()}
FUNCTIONS, _CLASSES, TRANSPARENT, LEADS = (_NODES[it] for it in ("functions", "classes", "transparent", "leads"))
_WRAPPERS, _BINDINGS = _NODES["wrappers"], _NODES["bindings"]
_WRAPPED: Final = FUNCTIONS | _CLASSES | _WRAPPERS | _BINDINGS
_MAX_WRAPPERS: Final = 4
_MAX_NAME_CHARACTERS: Final = 100


@dataclass(frozen=True, slots=True)
class Language:
    """A language by its name, and the package of its grammar."""

    name: str
    package: str
    function: str


LANGUAGES: Final = {
    suffix: Language(row["name"], row["package"], row.get("function", "language"))
    for row in _TABLES["grammar"]
    for suffix in row["suffixes"].split()
}


def language_of(name: str) -> Language | str:
    """Return the language of a file: only its name without a grammar, empty if it is unknown."""
    path = PurePosixPath(name.replace("\\", "/"))
    plain = PLAIN_LANGUAGES.get(path.suffix.lower()) or _BY_NAME.get(path.name.lower(), "")
    return LANGUAGES.get(path.suffix.lower(), plain)


@lru_cache
def parser_of(language: Language) -> Parser:
    """Return the parser of a language, loaded at the first call."""
    return Parser(Grammar(getattr(import_module(language.package), language.function)()))


def definition(node: Node) -> Node | None:
    """Return the definition that a node is or wraps; None for other nodes and for one on a single line."""
    for _ in range(_MAX_WRAPPERS):
        if node.start_point.row == last_row(node):
            return None
        if node.type in FUNCTIONS or node.type in _CLASSES:
            return node
        if node.type in _BINDINGS and any(child.type in _NODES["function_values"] for child in node.named_children):
            return node
        if node.type not in _WRAPPERS:
            return None
        inner = next((child for child in node.named_children if child.type in _WRAPPED), None)
        if inner is None:
            return None
        node = inner
    return None


def is_function(node: Node) -> bool:
    """Return whether a definition has no members."""
    return node.type in FUNCTIONS or node.type in _BINDINGS


def names_of(node: Node) -> tuple[str, ...]:
    """Return the name of a definition, after its type's if both are given (`Server.start`)."""
    fields = (node.child_by_field_name(field) for field in ("name", "key", "left"))
    name = _plain(next(filter(None, fields), None) or _declared(node))
    # The type of a Go method's receiver, without its pointer and type parameters.
    receiver = _plain(node.child_by_field_name("receiver")).strip("()").split(" ")[-1].lstrip("*").partition("[")[0]
    parts = name.split("::") if node.type == "function_definition" else [receiver, name]
    return tuple(part[:_MAX_NAME_CHARACTERS] for part in parts if part)


def last_row(node: Node) -> int:
    """Return the last row of a node, without a line break at its end."""
    end = node.end_point
    return end.row - 1 if end.column == 0 and end.row > node.start_point.row else end.row


def _declared(node: Node) -> Node | None:
    found = node.child_by_field_name("type") if node.type == "impl_item" else None
    declarator = node.child_by_field_name("declarator")
    while declarator is not None:
        found, declarator = declarator, declarator.child_by_field_name("declarator")
    return found or next((child for child in node.named_children if child.type in _NODES["names"]), None)


def _plain(node: Node | None) -> str:
    text = node.text if node else None
    return " ".join(text.decode(errors="replace").split()).strip("\"'") if text else ""
