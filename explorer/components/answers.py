"""An answer as HTML: its Markdown rendered, its [N] markers linked to their passages, doubtful sentences marked."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

from retrieval.answers.answering import Answering, answered, note
from retrieval.engine.types import ChunkId
from retrieval.llm.citations import find_citations

# Signs of a dead script hold a marker's place while its surroundings become HTML: to Markdown they are punctuation,
# as the brackets are whose place they hold, so that emphasis before them still ends.
_OPEN: Final = "\U00010af0"
_CLOSE: Final = "\U00010af1"
_DOUBT_BEGINS: Final = "\U00010af2"
_DOUBT_ENDS: Final = "\U00010af3"
_HOLDERS: Final = re.compile(f"[{_OPEN}{_CLOSE}{_DOUBT_BEGINS}{_DOUBT_ENDS}]")
_PLACE: Final = re.compile(rf"{_OPEN}(\d+){_CLOSE}")
_TAG: Final = re.compile(r"<(/?)(\w++)[^<>]*+>")
_INLINE: Final = frozenset({"a", "code", "em", "span", "strong"})
#: What makes a line a heading, a quotation or an item; a place holder before it would unmake it.
_LINE_OPENING: Final = re.compile(r"\s*(?:(?:[-*+>]|#{1,6}|\d{1,9}[.)])\s+)*")

# Quoted documents bring no HTML, links or pictures of their own into the page.
_MARKDOWN: Final = MarkdownIt("commonmark", {"html": False}).enable("table").disable(["link", "image", "autolink"])


@dataclass(frozen=True, slots=True)
class AnswerPanel:
    """A cited answer, ready to show."""

    html: SafeString
    #: Who wrote it; "extractive" only quotes, and says so.
    provider: str
    #: It says that the sources do not answer the question.
    refused: bool = False
    #: What its reader should know of how it came to be.
    notices: tuple[str, ...] = ()

    @property
    def announcement(self) -> str:
        """What a screen reader is told when it arrives."""
        return "Not found in your documents." if self.refused else "Answer ready."


@dataclass(frozen=True, slots=True)
class Doubt:
    """A sentence to mark: its place in the text, in code points, end exclusive, and the sign that follows it."""

    start: int
    end: int
    sign: SafeString


@dataclass(frozen=True, slots=True)
class Citable:
    """A passage that an answer may cite."""

    address: str
    #: The line above the passage, shown when the marker is pointed at.
    header: str


def answer_panel(answering: Answering, *, address: Callable[[ChunkId], str]) -> AnswerPanel:
    """Return the answer to a search's question from its passages, as the API gives it. Raises CoreCubeError."""
    passages = {
        passage.number: Citable(address(passage.hit.chunk_id), passage.header.removeprefix("### "))
        for passage in answering.outcome.passages
    }
    done = answered(answering)
    note(answering, done)
    notices = tuple(it.text for it in done.notices)
    return AnswerPanel(answer_html(done.text, passages), done.provider, done.refused, notices)


def answer_html(text: str, passages: Mapping[int, Citable]) -> SafeString:
    """Return an answer's Markdown as HTML, the markers of passages 1 to len(passages) as links to them.

    Everything is escaped but for Markdown's own elements and those links.
    """
    return marked_html(text, {number: _marker(number, passage) for number, passage in passages.items()})


def marked_html(text: str, markers: Mapping[int, SafeString], doubts: Sequence[Doubt] = ()) -> SafeString:
    """Return an answer's Markdown as HTML with what its markers 1 to len(markers) become, and its doubts marked.

    A doubtful sentence is wrapped in a span where it lies in one piece of the text; its sign follows it in any case.
    Everything is escaped but for Markdown's own elements, the markers and the signs.
    """
    html = _rendered(_with_places(text, len(markers), doubts))
    html = _PLACE.sub(lambda found: markers[int(found.group(1))], html)
    for number, doubt in enumerate(doubts):
        html = _with_doubt(html, number, doubt.sign)
    return mark_safe(html)  # noqa: S308 -- escaped by the renderer


def _rendered(markdown: str) -> str:
    """Return Markdown as HTML without style attributes, which the content security policy refuses, or languages."""
    tokens = _MARKDOWN.parse(markdown)
    for token in tokens:
        token.attrs.pop("style", None)
        # A fence's language would stand in an attribute, and place holders with it.
        token.info = ""
    html: str = _MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {})
    return html


def _with_places(text: str, passage_count: int, doubts: Iterable[Doubt] = ()) -> str:
    """Return the text with place holders for its markers, and for where its doubtful sentences begin and end."""
    pieces: list[str] = []
    place = 0
    for start, end, holder in sorted((*_marker_places(text, passage_count), *_doubt_places(text, doubts))):
        pieces += (_without_places(text[place:start]), holder)
        place = max(place, end)
    return "".join((*pieces, _without_places(text[place:])))


def _marker_places(text: str, passage_count: int) -> Iterator[tuple[int, int, str]]:
    for citation in find_citations(text, passage_count):
        yield citation.start, citation.end, f"{_OPEN}{citation.number}{_CLOSE}"


def _doubt_places(text: str, doubts: Iterable[Doubt]) -> Iterator[tuple[int, int, str]]:
    for number, doubt in enumerate(doubts):
        opening = _LINE_OPENING.match(text, doubt.start, doubt.end)
        start = opening.end() if opening else doubt.start
        end = doubt.start + len(text[doubt.start : doubt.end].rstrip())
        yield start, start, f"{_DOUBT_BEGINS}{number}{_CLOSE}"
        yield end, end, f"{_DOUBT_ENDS}{number}{_CLOSE}"


def _with_doubt(html: str, number: int, sign: SafeString) -> str:
    """Return the HTML with one doubtful sentence in a span, where that cuts no element, and its sign after it."""
    begin, end = f"{_DOUBT_BEGINS}{number}{_CLOSE}", f"{_DOUBT_ENDS}{number}{_CLOSE}"
    before, found, rest = html.partition(begin)
    inside, closed, after = rest.partition(end)
    if found and closed:
        wrapped = f'<span class="doubt">{inside}</span>' if _is_one_piece(inside) else inside
        return f"{before}{wrapped}{sign}{after}"
    # The other one stood where nothing is shown: in a fence's first line, or in the definition of a link.
    left = next((it for it in (begin, end) if it in html), "")
    return html.replace(left, sign) if left else f"{html}{sign}"


def _is_one_piece(html: str) -> bool:
    """Return whether every element that begins here ends here, and none is a block."""
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


def _without_places(text: str) -> str:
    return _HOLDERS.sub("", text)


def _marker(number: int, passage: Citable) -> SafeString:
    return format_html('<a class="citation" href="{}" title="{}">[{}]</a>', passage.address, passage.header, number)
