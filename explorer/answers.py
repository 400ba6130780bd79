"""An answer as HTML: its Markdown rendered, its [N] markers as links to their passages."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

from retrieval.generate.citations import find_citations
from retrieval.generate.types import Provider, Task
from retrieval.services import SearchOutcome
from retrieval.types import ChunkId

# Private-use characters hold a marker's place while its surroundings become HTML.
_OPEN: Final = "\ue000"
_CLOSE: Final = "\ue001"
_PLACE: Final = re.compile(rf"{_OPEN}(\d+){_CLOSE}")

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


@dataclass(frozen=True, slots=True)
class Citable:
    """A passage that an answer may cite."""

    address: str
    #: The line above the passage, shown when the marker is pointed at.
    header: str


def answer_panel(outcome: SearchOutcome, provider: Provider, *, address: Callable[[ChunkId], str]) -> AnswerPanel:
    """Return the answer to a search's question from its passages, as the API gives it. Raises EncoderError."""
    state = outcome.state
    task = Task(question=state.query.text, passages=outcome.passages, terms=state.terms)
    passages = {
        passage.number: Citable(address(passage.hit.chunk_id), passage.header.removeprefix("### "))
        for passage in outcome.passages
    }
    text = "".join(provider.complete(task))
    return AnswerPanel(answer_html(text, passages), provider.name, provider.refuses(text))


def answer_html(text: str, passages: Mapping[int, Citable]) -> SafeString:
    """Return an answer's Markdown as HTML, the markers of passages 1 to len(passages) as links to them.

    Everything is escaped but for Markdown's own elements and those links.
    """
    rendered = _rendered(_with_places(text, len(passages)))
    return mark_safe(_PLACE.sub(lambda found: _marker(int(found.group(1)), passages), rendered))  # noqa: S308 -- escaped by the renderer


def _rendered(markdown: str) -> str:
    """Return Markdown as HTML without style attributes, which the content security policy refuses."""
    tokens = _MARKDOWN.parse(markdown)
    for token in tokens:
        token.attrs.pop("style", None)
    html: str = _MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {})
    return html


def _with_places(text: str, passage_count: int) -> str:
    """Return the answer's text with every marker replaced by its place holder."""
    pieces: list[str] = []
    place = 0
    for citation in find_citations(text, passage_count):
        pieces += (_without_places(text[place : citation.start]), f"{_OPEN}{citation.number}{_CLOSE}")
        place = citation.end
    return "".join((*pieces, _without_places(text[place:])))


def _without_places(text: str) -> str:
    return text.replace(_OPEN, "").replace(_CLOSE, "")


def _marker(number: int, passages: Mapping[int, Citable]) -> str:
    passage = passages[number]
    return format_html('<a class="citation" href="{}" title="{}">[{}]</a>', passage.address, passage.header, number)
