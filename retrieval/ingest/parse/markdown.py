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
from retrieval.ingest.parse.html import blocks_of_fragment
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
_FRONT_MATTER: Final = re.compile(r"\A(---|\+\+\+)[ \t]*\n(.*?)^\1[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_FACT: Final = re.compile(r"^([A-Za-z_][\w.-]*)[ \t]*[:=][ \t]*(.*)$")
_COMMENT: Final = re.compile(r"\s#.*$")
_FOLDED: Final = frozenset({"|", ">", "|-", ">-", "|+", ">+"})
_MAX_CHARACTERS: Final = 20_000
#: Fenced blocks and code spans come first in the alternation, so that tags inside them do not match.
_FENCE: Final = r"^(?P<indent>[ \t]*)(?P<fence>`{3,}+|~{3,}+)[^\n]*+\n(?:.*?^[ \t]*(?P=fence)[`~]*[ \t]*$|.*\Z)"
_SPAN: Final = r"(?<!`)(?P<ticks>`+)(?!`)[^\n]{1,500}?(?<!`)(?P=ticks)(?!`)"
_COMMENT_TAG: Final = re.compile(r"\{%-?[ \t]*(end)?comment[ \t]*-?%\}")
_TAG: Final = r"\{%-?[ \t]*+(?P<verb>\w*+)(?:(?!\{%).){0,500}?%\}"
_VARIABLE: Final = r"\{\{-?[ \t]*(?:site|page|include|layout)\.[^\n{}]{0,300}\}\}"
_CONTENTS: Final = r"^[ \t]*(?:[-*+]|\d+\.)[ \t]++[^\n]*+\n[ \t]*+\{:\s*toc\b[^\n}]*\}"
_ATTRIBUTES: Final = r"\{::?[^\n{}]{0,300}\}|\{:/[^\n{}]{0,80}\}|[ \t]\{#[\w-]+\}[ \t]*$"
_GENERATED: Final = re.compile(
    "|".join(f"(?:{pattern})" for pattern in (_FENCE, _SPAN, _TAG, _VARIABLE, _CONTENTS, _ATTRIBUTES)),
    re.DOTALL | re.MULTILINE,
)
#: Captured text is passed to an include that shows it unchanged, as a code block.
_CAPTURE_FENCE: Final = "\n~~~~~~\n"
_RAW_TAG: Final = r"\{%-?[ \t]*(?:end)?raw[ \t]*-?%\}"
_RAW: Final = re.compile(rf"^[ \t]*{_RAW_TAG}[ \t]*\n|{_RAW_TAG}", re.MULTILINE)


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
        self._lists: list[int | None] = []  #: One entry for each open list: the next number, or None for bullets.
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
        if name[1].lower() in {"br", "p", "div", "li"}:
            return "\n"
        return "" if name[1].lower() in defs.tags else token.content
    return _BREAKS.get(token.type, token.content)


def split_front_matter(text: str) -> tuple[dict[str, str], str]:
    """Return the page's metadata, which may be empty, and the text below.

    Metadata are the scalars and lists of scalars in YAML (---) or TOML (+++); lists become one value with commas,
    nested values stay text. Reading only those needs no YAML library and no anchors, tags or nesting, which a hostile
    page could abuse.
    """
    found = _FRONT_MATTER.match(text)
    return (_facts(found[2][:_MAX_CHARACTERS]), text[found.end() :]) if found else ({}, text)


def _facts(lines: str) -> dict[str, str]:
    facts: dict[str, list[str]] = {}
    key = ""
    for line in lines.splitlines():
        fact = _FACT.match(line)
        entry = line.strip()
        if fact:
            key = fact[1].lower()
            facts[key] = _values(fact[2])
        elif key and entry.startswith("- "):
            facts[key].append(_unquoted(entry[2:]))
        elif key and entry and line[0].isspace():
            facts[key][-1:] = [" ".join([*facts[key][-1:], entry])]
    return {key: ", ".join(filter(None, values)) for key, values in facts.items()}


def _values(written: str) -> list[str]:
    written = written.strip()
    if written in _FOLDED:
        return []
    if written.startswith("[") and written.endswith("]"):
        return [_unquoted(part) for part in written[1:-1].split(",")]
    return [_unquoted(written)] if written else []


def _unquoted(value: str) -> str:
    value = value.strip()
    for quote in "\"'":
        end = value.rfind(quote)
        if value.startswith(quote) and end > 0:
            return value[1:end].replace("''", "'").replace('\\"', '"')
    return _COMMENT.sub("", value).rstrip()


def without_generator_tags(markdown: str) -> str:
    """Return the text without includes, captures, attribute lists and site variables, but with those in code."""
    if "{" not in markdown:
        return markdown
    return _GENERATED.sub(_replacement, _without_comments(_RAW.sub("", markdown)))


def _without_comments(markdown: str) -> str:
    """Remove the text between comment tags; an unclosed comment is text."""
    parts: list[str] = []
    position = 0
    opened: int | None = None
    for tag in _COMMENT_TAG.finditer(markdown):
        if not tag[1] and opened is None:
            opened = tag.start()
        elif tag[1] and opened is not None:
            parts.append(markdown[position:opened])
            position, opened = tag.end(), None
    return "".join(parts) + markdown[position:]


def _replacement(found: re.Match[str]) -> str:
    if found["fence"] or found["ticks"]:
        return found[0]
    return _CAPTURE_FENCE if found["verb"] in ("capture", "endcapture") else ""
