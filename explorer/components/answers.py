"""An answer as HTML: its Markdown rendered, its [N] markers linked to their passages, doubtful sentences marked."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

from retrieval.answers.answering import Answering, answered, note
from retrieval.engine.types import ChunkId
from retrieval.llm.citations import find_citations

# Placeholders for markers during Markdown rendering. They are unused characters that Markdown treats as punctuation,
# like the brackets that they replace, so that emphasis before them still ends.
_OPEN: Final = "\U00010af0"
_CLOSE: Final = "\U00010af1"
_DOUBT_BEGINS: Final = "\U00010af2"
_DOUBT_ENDS: Final = "\U00010af3"
_HOLDERS: Final = re.compile(f"[{_OPEN}{_CLOSE}{_DOUBT_BEGINS}{_DOUBT_ENDS}]")
_PLACE: Final = re.compile(rf"{_OPEN}(\d+){_CLOSE}")
_TAG: Final = re.compile(r"<(/?)(\w++)[^<>]*+>")
_INLINE: Final = frozenset({"a", "code", "em", "span", "strong"})
#: The start of a heading, quotation, list item or row, and the end of a row; a placeholder outside would break it.
_LINE_OPENING: Final = re.compile(r"\s*(?:(?:[-*+>]|#{1,6}|\d{1,9}[.)])\s+)*(?P<row>\|\s*)?")
_ROW_END: Final = " |"

# Quoted documents cannot add HTML, links or images to the page.
_MARKDOWN: Final = MarkdownIt("commonmark", {"html": False}).enable("table").disable(["link", "image", "autolink"])
#: The renderer escapes these in text, so that they are always elements.
_SCROLLING: Final = {
    "<table>": '<div class="table-scroll" role="group" aria-label="Table" tabindex="0"><table>',
    "</table>": "</table></div>",
    "<pre>": '<pre tabindex="0">',
}


@dataclass(frozen=True, slots=True)
class Doubt:
    """A sentence to mark: its position in code points, end exclusive, and the sign after it."""

    start: int
    end: int
    sign: SafeString


def answer_panel(answering: Answering, *, address: Callable[[ChunkId], str]) -> dict[str, Any]:
    """Return the answer to a search from its passages, the same as in the API. Raises CoreCubeError."""
    passages = {
        passage.number: (address(passage.hit.chunk_id), passage.header.removeprefix("### "))
        for passage in answering.outcome.passages
    }
    done = answered(answering)
    note(answering, done)
    return {
        "html": answer_html(done.text, passages),
        "provider": done.provider,
        "refused": done.refused,
        "announcement": "Not found in your documents." if done.refused else "Answer ready.",
        "notices": tuple(it.text for it in done.notices),
    }


def answer_html(text: str, passages: Mapping[int, tuple[str, str]]) -> SafeString:
    """Return an answer's Markdown as HTML, the markers of passages 1 to len(passages) as links.

    `passages` has the address and the header of each, by number; the header is the tooltip of its marker. Everything is
    escaped except Markdown's elements and those links.
    """
    link = '<a class="citation" href="{}" title="{}">[{}]</a>'
    markers = {number: format_html(link, *it, number) for number, it in passages.items()}
    return marked_html(text, markers)


def marked_html(text: str, markers: Mapping[int, SafeString], doubts: Sequence[Doubt] = ()) -> SafeString:
    """Return an answer's Markdown as HTML with its markers 1 to len(markers) replaced and its doubts marked.

    A doubtful sentence is wrapped in a span unless that would cut an element; its sign always follows it. Everything is
    escaped except Markdown's elements, the markers and the signs.
    """
    html = _rendered(_with_places(text, len(markers), doubts))
    html = _PLACE.sub(lambda found: markers[int(found.group(1))], html)
    for number, doubt in enumerate(doubts):
        html = _with_doubt(html, number, doubt.sign)
    return mark_safe(html)  # noqa: S308 -- escaped by the renderer


def _rendered(markdown: str) -> str:
    """Return Markdown as HTML without style attributes, which the content security policy refuses, or languages.

    Tables and code are focusable, so that the keyboard can scroll them sideways.
    """
    tokens = _MARKDOWN.parse(markdown)
    for token in tokens:
        if token.attrs.pop("style", "") == "text-align:right":
            token.attrs["class"] = "is-number"
        # The language of a fence would put placeholders into an attribute.
        token.info = ""
    html: str = _MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {})
    for plain, scrolling in _SCROLLING.items():
        html = html.replace(plain, scrolling)
    return html


def _with_places(text: str, passage_count: int, doubts: Iterable[Doubt] = ()) -> str:
    """Return the text with placeholders for its markers and for the ends of its doubtful sentences."""
    pieces: list[str] = []
    place = 0
    markers = ((it.start, it.end, f"{_OPEN}{it.number}{_CLOSE}") for it in find_citations(text, passage_count))
    for start, end, holder in sorted((*markers, *_doubt_places(text, doubts))):
        pieces += (_HOLDERS.sub("", text[place:start]), holder)
        place = max(place, end)
    return "".join((*pieces, _HOLDERS.sub("", text[place:])))


def _doubt_places(text: str, doubts: Iterable[Doubt]) -> Iterator[tuple[int, int, str]]:
    for number, doubt in enumerate(doubts):
        opening = _LINE_OPENING.match(text, doubt.start, doubt.end)
        start = opening.end() if opening else doubt.start
        said = text[doubt.start : doubt.end].rstrip()
        if opening and opening["row"]:
            said = said.rstrip(_ROW_END)
        end = max(start, doubt.start + len(said))
        yield start, start, f"{_DOUBT_BEGINS}{number}{_CLOSE}"
        yield end, end, f"{_DOUBT_ENDS}{number}{_CLOSE}"


def _with_doubt(html: str, number: int, sign: SafeString) -> str:
    """Return the HTML with one doubtful sentence in a span, unless that cuts an element, and its sign after it."""
    begin, end = f"{_DOUBT_BEGINS}{number}{_CLOSE}", f"{_DOUBT_ENDS}{number}{_CLOSE}"
    before, found, rest = html.partition(begin)
    inside, closed, after = rest.partition(end)
    if found and closed:
        wrapped = f'<span class="doubt">{inside}</span>' if _is_one_piece(inside) else inside
        return f"{before}{wrapped}{sign}{after}"
    # The other one was in hidden text: the first line of a fence, or the definition of a link.
    left = next((it for it in (begin, end) if it in html), "")
    return html.replace(left, sign) if left else f"{html}{sign}"


def _is_one_piece(html: str) -> bool:
    """Return whether all elements are complete, and none is a block."""
    opened: list[str] = []
    for tag in _TAG.finditer(html):
        closes, name = tag.group(1), tag.group(2)
        if name not in _INLINE:
            return False
        if not closes:
            opened.append(name)
        elif not opened or opened.pop() != name:
            return False
    return not opened
