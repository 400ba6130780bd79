"""Markdown (CommonMark with tables), with the front matter and tags of site generators."""

import re
from collections.abc import Iterator, Sequence
from html import unescape
from itertools import groupby
from typing import Final

from lxml.html import defs
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from retrieval.ingest.parse.builder import BlockBuilder
from retrieval.ingest.parse.decoding import charset_of, decode
from retrieval.ingest.parse.finish import finished, tidy
from retrieval.ingest.parse.frontmatter import split_front_matter
from retrieval.ingest.parse.html import blocks_of_fragment
from retrieval.ingest.parse.liquid import without_generator_tags
from retrieval.text.document import Block, Hyperlink, ParsedDocument, RawDocument

_MAX_NESTING: Final = 100
#: The time for reading markup is quadratic in its length in the worst case (unclosed brackets).
_MAX_INLINE_CHARACTERS: Final = 20_000
_BREAKS: Final = {"softbreak": " ", "hardbreak": "\n"}
_DELIMITER_ROW: Final = re.compile(r"[|:\-\s]+")
#: A line that starts with a bar, or that looks like a delimiter row.
_LOOSE_ROW: Final = re.compile(r"\||[:\s-]*-[:\s]*\|")
_TAG_NAME: Final = re.compile(r"</?([A-Za-z][\w-]*)")
_ANCHOR: Final = re.compile(r"<a\s[^>]{0,200}?href\s*=\s*[\"']([^\"'>]*)", re.IGNORECASE)
_LINE_BREAK_TAGS: Final = frozenset({"br", "p", "div", "li"})


def parse_markdown(raw: RawDocument) -> ParsedDocument:
    """Return the document of a Markdown file without tags and markup, but with link and image texts."""
    facts, body = split_front_matter(tidy(decode(raw.content, charset_of(raw.media_type))))
    return finished(
        raw,
        source_type="markdown",
        blocks=blocks_of_markdown(without_generator_tags(body)),
        metadata={key: value for key, value in facts.items() if key != "title"},
        explicit_title=facts.get("title", ""),
    )


def blocks_of_markdown(markdown: str) -> list[Block]:
    """Return the blocks of Markdown text in reading order."""
    reader = _Reader()
    parser = MarkdownIt("commonmark", {"maxNesting": _MAX_NESTING}).enable("table")
    parser.core.ruler.at("inline", _read_inline)
    for token in parser.parse(markdown):
        reader.read(token)
    return reader.builder.blocks()


def _read_inline(state: StateCore) -> None:
    """Read the markup in paragraphs, headings and cells, except in a very long one, which stays plain text."""
    for token in state.tokens:
        if token.type == "inline" and len(token.content) > _MAX_INLINE_CHARACTERS:
            token.children = [Token("text", "", 0, content=token.content)]
        elif token.type == "inline":
            token.children = []
            state.md.inline.parse(token.content, state.md, state.env, token.children)


class _Reader:
    def __init__(self) -> None:
        self.builder = BlockBuilder()
        #: One entry for each open list: the next number, or None for bullets.
        self._lists: list[int | None] = []
        self._marker = ""
        self._heading_level = 0
        self._rows: list[list[str]] = []
        self._in_table = False

    def read(self, token: Token) -> None:
        match token.type:
            case "heading_open":
                self._heading_level = int(token.tag[1])
            case "heading_close":
                self._heading_level = 0
            case "bullet_list_open":
                self._lists.append(None)
            case "ordered_list_open":
                self._lists.append(int(token.attrGet("start") or 1))
            case "bullet_list_close" | "ordered_list_close":
                self._lists.pop()
            case "list_item_open":
                number = self._lists[-1]
                self._marker = "-" if number is None else f"{number}."
                self._lists[-1] = None if number is None else number + 1
            case _:
                self._read_content(token)

    def _read_content(self, token: Token) -> None:
        match token.type:
            case "table_open":
                self._in_table, self._rows = True, []
            case "tr_open":
                self._rows.append([])
            case "table_close":
                self._in_table = False
                self.builder.table(self._rows, has_header=True)
            case "inline":
                self._inline(token)
            case "fence" | "code_block":
                self.builder.code(token.content)
            case "html_block":
                self.builder.extend(blocks_of_fragment(token.content))

    def _inline(self, token: Token) -> None:
        text = _plain(token.children or ())
        for link in _links(token.children or ()):
            self.builder.link(link.text, link.target)
        if self._in_table:
            self._rows[-1].append(text)
        elif self._heading_level:
            self.builder.heading(text, self._heading_level)
        elif self._lists:
            self.builder.item(text, depth=len(self._lists) - 1, marker=self._marker)
            self._marker = ""
        elif rows := _loose_rows(token.children or ()):
            self.builder.table(rows, has_header=True)
        else:
            self.builder.paragraph(text)


def _loose_rows(tokens: Sequence[Token]) -> list[list[str]]:
    """Return the rows of a table with a missing or malformed delimiter row; none for a paragraph."""
    lines = [
        _plain(list(line)) for is_break, line in groupby(tokens, lambda token: token.type in _BREAKS) if not is_break
    ]
    has_bars = len(lines) > 1 and all("|" in line for line in lines)
    if not has_bars or not any(map(_LOOSE_ROW.match, lines)):
        return []
    return [line.strip("| \t").split("|") for line in lines if not _DELIMITER_ROW.fullmatch(line)]


def _links(tokens: Sequence[Token]) -> Iterator[Hyperlink]:
    target, first = "", 0
    for place, token in enumerate(tokens):
        if opened := _opened(token):
            target, first = opened, place + 1
        elif target and (token.type == "link_close" or token.content.lower() == "</a>"):
            yield Hyperlink(_plain(tokens[first:place]), target)
            target = ""


def _opened(token: Token) -> str:
    if token.type == "link_open":
        return str(token.attrGet("href") or "")
    found = _ANCHOR.match(token.content) if token.type == "html_inline" else None
    return unescape(found[1]) if found else ""


def _plain(tokens: Sequence[Token]) -> str:
    return "".join(map(_plain_token, tokens)).strip()


def _plain_token(token: Token) -> str:
    if token.type == "image":
        return _plain(token.children or ())
    if token.type == "html_inline":
        name = _TAG_NAME.match(token.content)
        if name is None:
            return ""
        if name[1].lower() in _LINE_BREAK_TAGS:
            return "\n"
        return "" if name[1].lower() in defs.tags else token.content
    return _BREAKS.get(token.type, token.content)
