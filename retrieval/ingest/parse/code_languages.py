"""The programming languages with a grammar, and the node types of their syntax trees."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import PurePosixPath
from typing import Final

from tree_sitter import Language as Grammar
from tree_sitter import Node, Parser

YAML: Final = "yaml"
#: Languages without a grammar here, split at blank lines.
PLAIN_LANGUAGES: Final[Mapping[str, str]] = {
    ".bat": "batch", ".cfg": "ini", ".clj": "clojure", ".cmake": "cmake", ".conf": "configuration", ".css": "css",
    ".dart": "dart", ".ex": "elixir", ".exs": "elixir", ".fs": "f#", ".gradle": "groovy", ".graphql": "graphql",
    ".groovy": "groovy", ".hcl": "hcl", ".hs": "haskell", ".ini": "ini", ".jl": "julia", ".less": "css",
    ".lua": "lua", ".m": "objective-c", ".ml": "ocaml", ".pas": "pascal", ".pl": "perl", ".pm": "perl",
    ".properties": "properties", ".proto": "protobuf", ".ps1": "powershell", ".psm1": "powershell", ".r": "r",
    ".sass": "css", ".scala": "scala", ".scss": "css", ".svelte": "svelte", ".swift": "swift",
    ".tf": "terraform", ".vb": "visual basic", ".vue": "vue", ".yaml": YAML, ".yml": YAML,
}  # fmt: skip
_BY_NAME: Final[Mapping[str, str]] = {
    "dockerfile": "dockerfile", "makefile": "make", "gnumakefile": "make", "jenkinsfile": "groovy",
    "cmakelists.txt": "cmake",
}  # fmt: skip
CODE_NAMES: Final = frozenset(_BY_NAME)
#: Named definitions without members, which are split only if they are large.
FUNCTIONS: Final = frozenset({
    "function_definition", "function_declaration", "generator_function_declaration", "function_item",
    "function_signature_item", "function_signature", "local_function_statement", "method_definition",
    "method_declaration", "constructor_declaration", "compact_constructor_declaration", "secondary_constructor",
    "destructor_declaration", "operator_declaration", "property_declaration", "method", "singleton_method",
    "macro_definition", "create_function", "create_procedure", "create_trigger", "table",
    "table_array_element",
})  # fmt: skip
#: Named definitions with members, which become separate blocks.
_CLASSES: Final = frozenset({
    "class_definition", "class_declaration", "abstract_class_declaration", "class_specifier", "struct_specifier",
    "union_specifier", "enum_specifier", "class", "module", "interface_declaration", "enum_declaration",
    "record_declaration", "struct_declaration", "annotation_type_declaration", "object_declaration",
    "trait_declaration", "trait_item", "impl_item", "mod_item", "struct_item", "enum_item", "union_item",
    "internal_module", "namespace_definition", "namespace_declaration", "type_spec", "type_alias_declaration",
    "type_definition", "create_table", "create_view", "create_materialized_view", "create_type",
})  # fmt: skip
TRANSPARENT: Final = frozenset({"preproc_ifdef", "preproc_if", "linkage_specification", "companion_object"})
_WRAPPERS: Final = frozenset({
    "decorated_definition", "export_statement", "template_declaration", "statement", "expression_statement",
    "lexical_declaration", "variable_declaration", "type_declaration", "ambient_declaration", "declaration",
})  # fmt: skip
#: Bindings that define a function if their value is one.
_BINDINGS: Final = frozenset({"variable_declarator", "assignment_expression", "public_field_definition", "pair"})
_FUNCTION_VALUES: Final = frozenset({"arrow_function", "function_expression", "generator_function", "class"})
_WRAPPED: Final = FUNCTIONS | _CLASSES | _WRAPPERS | _BINDINGS
#: Nodes that belong to the definition directly below them.
LEADS: Final = frozenset({"comment", "line_comment", "block_comment", "attribute_item", "decorator", "attribute_list"})
#: Node types of names, in grammars without a field for them.
_NAMES: Final = frozenset({"object_reference", "identifier", "bare_key", "quoted_key", "dotted_key", "constant"})
_MAX_WRAPPERS: Final = 4
_MAX_NAME_CHARACTERS: Final = 100


@dataclass(frozen=True, slots=True)
class Language:
    """A language by its name, and the package of its grammar."""

    name: str
    package: str
    function: str = "language"


_SQL: Final = Language("sql", "tree_sitter_sql")
_BY_SUFFIXES: Final[Mapping[str, Language]] = {
    ".py .pyi .pyw": Language("python", "tree_sitter_python"),
    ".js .mjs .cjs .jsx": Language("javascript", "tree_sitter_javascript"),
    ".ts .mts .cts": Language("typescript", "tree_sitter_typescript", "language_typescript"),
    ".tsx": Language("typescript", "tree_sitter_typescript", "language_tsx"),
    ".go": Language("go", "tree_sitter_go"),
    ".java": Language("java", "tree_sitter_java"),
    ".rs": Language("rust", "tree_sitter_rust"),
    ".c": Language("c", "tree_sitter_c"),
    ".h .cc .cpp .cxx .hh .hpp .hxx": Language("c++", "tree_sitter_cpp"),
    ".sh .bash .zsh .ksh": Language("shell", "tree_sitter_bash"),
    ".sql .ddl": _SQL,
    ".cs": Language("c#", "tree_sitter_c_sharp"),
    ".rb .rake .gemspec": Language("ruby", "tree_sitter_ruby"),
    ".php": Language("php", "tree_sitter_php", "language_php"),
    ".kt .kts": Language("kotlin", "tree_sitter_kotlin"),
    ".toml": Language("toml", "tree_sitter_toml"),
}
LANGUAGES: Final = {suffix: language for suffixes, language in _BY_SUFFIXES.items() for suffix in suffixes.split()}


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
        if node.type in _BINDINGS and any(child.type in _FUNCTION_VALUES for child in node.named_children):
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
    return found or next((child for child in node.named_children if child.type in _NAMES), None)


def _plain(node: Node | None) -> str:
    text = node.text if node else None
    return " ".join(text.decode(errors="replace").split()).strip("\"'") if text else ""
