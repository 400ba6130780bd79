"""reStructuredText, including Sphinx's extensions: nothing is included, fetched or executed."""

import re
from collections.abc import Callable, Mapping
from typing import Final

from docutils import nodes
from docutils.frontend import get_default_settings
from docutils.parsers.rst import Parser
from docutils.utils import new_document

from retrieval.errors import IngestError
from retrieval.ingest.parse.builder import BlockBuilder
from retrieval.ingest.parse.decoding import charset_of, decode
from retrieval.ingest.parse.finish import finished, tidy
from retrieval.text.document import Block, ParsedDocument, RawDocument

_MAX_LINE_CHARACTERS: Final = 10_000
_DEEPEST_LEVEL: Final = 6
_MAX_NESTING: Final = 5
#: A role that docutils does not know: the text joined to it, and its text without the target.
_ROLE: Final = re.compile(
    r"(?<![\w:+.-])([\w+.-]*+):(?=[\w:+.-]{2})[\w:+.-]++(?<=:)`[~!]?([^`]*?)(?:(?<!\s)\s*+<[^<>`]*+>)?`"
)
#: Sphinx's link to another page: its text and, if different, its target.
_PAGE_ROLE: Final = re.compile(r":doc:`([^`<>]*?)(?:(?<!\s)\s*+<([^<>`]*+)>)?`")
_DIRECTIVE: Final = re.compile(r"\A\s*\.\. ([\w:+.-]+)::[ \t]*(.*(?:\n|\Z))", re.MULTILINE)
_OPTION: Final = re.compile(r"^[ \t]*:[\w -]+:.*\n?", re.MULTILINE)
#: Directives without text for readers: lists of files, settings, files that must not be read.
_IGNORED: Final = frozenset({
    "toctree", "contents", "include", "literalinclude", "raw", "index", "highlight", "currentmodule", "module",
    "automodule", "autoclass", "autofunction", "automethod", "autosummary", "tabularcolumns", "meta", "default-role",
    "py:currentmodule", "py:module", "image", "figure", "only", "csv-table",
})  # fmt: skip
_CODE: Final = frozenset({"code", "code-block", "sourcecode", "prompt", "ipython", "doctest", "testcode", "graphviz"})
_VERSIONS: Final = frozenset({"versionadded", "versionchanged", "versionremoved", "deprecated"})


def parse_rst(raw: RawDocument) -> ParsedDocument:
    """Return a reStructuredText file. Raises IngestError `too_large` for a line of 10,000 characters or more."""
    text = tidy(decode(raw.content, charset_of(raw.media_type)))
    if max(map(len, text.split("\n"))) >= _MAX_LINE_CHARACTERS:
        raise IngestError("too_large", f"A line of the file has more than {_MAX_LINE_CHARACTERS} characters.")
    return finished(raw, source_type="rst", blocks=_blocks(text, 0))


def _blocks(text: str, nesting: int) -> list[Block]:
    settings = get_default_settings(Parser)
    settings.file_insertion_enabled = settings.raw_enabled = False
    settings.report_level = settings.halt_level = 5
    settings.warning_stream = ""
    document = new_document("", settings)
    Parser().parse(text, document)
    return _Reader(nesting).read(document)


class _Reader:
    def __init__(self, nesting: int) -> None:
        self._builder = BlockBuilder()
        self._nesting = nesting
        self._level = 0
        self._depth = 0  #: Nesting depth of lists, and the marker of the next line.
        self._marker = ""
        self._targets: dict[str, str] = {}
        self._handlers: Mapping[type[nodes.Node], Callable[..., None]] = {
            nodes.section: self._section,
            nodes.title: self._title,
            nodes.paragraph: self._paragraph,
            **dict.fromkeys((nodes.literal_block, nodes.doctest_block, nodes.math_block), self._code),
            nodes.line_block: self._lines,
            **dict.fromkeys((nodes.bullet_list, nodes.enumerated_list), self._list),
            nodes.definition_list_item: self._definition,
            nodes.field: self._field,
            nodes.option_list_item: self._field,
            nodes.table: self._table,
            nodes.system_message: self._unknown,
            nodes.image: lambda image: self._builder.paragraph(str(image.get("alt", ""))),
            **dict.fromkeys((nodes.comment, nodes.raw, nodes.target, nodes.substitution_definition), lambda _: None),
        }

    def read(self, document: nodes.document) -> list[Block]:
        named = (node for node in document.findall(nodes.target) if node.get("refuri"))
        self._targets = {name: node["refuri"] for node in named for name in node["names"]}
        self._children(document)
        return self._builder.blocks()

    def _children(self, node: nodes.Node) -> None:
        for child in node.children:
            handler = self._handlers.get(type(child))
            if handler:
                handler(child)
            elif isinstance(child, nodes.TextElement):
                self._paragraph(child)
            else:
                self._children(child)

    def _section(self, node: nodes.section) -> None:
        self._level += 1
        self._children(node)
        self._level -= 1

    def _title(self, node: nodes.title) -> None:
        if isinstance(node.parent, nodes.section):
            self._note_links(node)
            self._builder.heading(_text(node), min(self._level, _DEEPEST_LEVEL))
        else:
            self._paragraph(node)

    def _paragraph(self, node: nodes.TextElement) -> None:
        text = _text(node)
        self._note_links(node)
        if self._depth:
            self._builder.item(text, depth=self._depth - 1, marker=self._marker)
            self._marker = ""
        else:
            self._builder.paragraph(text)

    def _code(self, node: nodes.TextElement) -> None:
        self._builder.code(node.astext())

    def _lines(self, node: nodes.line_block) -> None:
        self._note_links(node)
        self._builder.paragraph("\n".join(_text(line) for line in node.findall(nodes.line)))

    def _list(self, node: nodes.Element) -> None:
        self._depth += 1
        start = node.get("start", 1) if isinstance(node, nodes.enumerated_list) else None
        for place, item in enumerate(node.children):
            self._marker = "-" if start is None else f"{start + place}."
            self._children(item)
        self._depth -= 1

    def _definition(self, node: nodes.definition_list_item) -> None:
        terms = ", ".join(_text(child) for child in node.children if not isinstance(child, nodes.definition))
        self._depth += 1
        self._builder.item(terms, depth=self._depth - 1, marker="-")
        for child in node.children:
            if isinstance(child, nodes.definition):
                self._children(child)
        self._depth -= 1

    def _field(self, node: nodes.Element) -> None:
        name, value = (" ".join(_text(child).split()) for child in node.children[:2])
        if value:
            self._note_links(node)
            self._builder.paragraph(f"{name}: {value}")

    def _table(self, node: nodes.table) -> None:
        for title in node.findall(nodes.title):
            self._builder.paragraph(_text(title))
        self._note_links(node)
        rows = [[_text(entry) for entry in row.findall(nodes.entry)] for row in node.findall(nodes.row)]
        self._builder.table(rows, has_header=next(node.findall(nodes.thead), None) is not None)

    def _note_links(self, node: nodes.Element) -> None:
        for link in node.findall(nodes.reference):
            target = link.get("refuri") or self._targets.get(link.get("refname", ""), "")
            self._builder.link(_text(link), target)
        for text, target in _PAGE_ROLE.findall(node.astext()):
            self._builder.link(text, target or text)

    def _unknown(self, node: nodes.system_message) -> None:
        for block in node.findall(nodes.literal_block):
            found = _DIRECTIVE.match(block.astext())
            if found and found[1] not in _IGNORED and self._nesting < _MAX_NESTING:
                lines = block.astext()[found.end() :].split("\n")
                margin = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
                content = _OPTION.sub("", "\n".join(line[margin:] for line in lines))
                if found[1] in _CODE:
                    self._builder.code(content)
                    continue
                self._builder.paragraph(_plain(f"{found[1]} {found[2]}" if found[1] in _VERSIONS else found[2]))
                self._builder.extend(_blocks(content, self._nesting + 1))


def _text(node: nodes.Node) -> str:
    return _plain(node.astext())


def _plain(text: str) -> str:
    return _ROLE.sub(r"\1\2", text)
