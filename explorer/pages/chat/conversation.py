"""A conversation on its page: answers with citations, their sources, and messages to the reader."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.utils.html import format_html
from django.utils.safestring import SafeString

from explorer import wording
from explorer.components.answers import Doubt, marked_html
from explorer.components.links import document_url
from retrieval.answers.conversations.reading import Exchange, Reference, ReferenceState
from retrieval.models import Message

_EXCERPT_CHARACTERS: Final = 280

_PROBLEMS: Final[Mapping[str, str]] = {
    "answer_breaker_open": "The language model failed several times and is paused. Try again shortly.",
    "answer_rate_limited": "The language model receives too many requests. Try again shortly.",
    "answer_timeout": "The language model took too long.",
    "answer_unavailable": "The language model could not be reached.",
    "interrupted": "The answer was interrupted.",
    "model_missing": "The embedding model is not installed. An admin can install it.",
    "no_answer": "The language model gave no answer.",
    "not_permitted": "You no longer have access to this preset.",
    "unknown_connection": "You no longer have access to a source of this conversation.",
    "unknown_preset": "The preset of this conversation no longer exists. Choose another one below.",
}
_PROBLEM: Final = "Something went wrong while the answer was written."

_WARNINGS: Final[Mapping[ReferenceState, str]] = {
    ReferenceState.STALE: "Changed or deleted since this answer.",
    ReferenceState.HIDDEN: "No longer visible to you.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _SourcePanel:
    anchor: str
    number: int
    state: ReferenceState
    #: Its place in its document; empty for none.
    address: str
    title: str
    #: Each is empty if unknown.
    connection: str
    path: str
    pages: str
    score: str
    excerpt: str
    #: Set if the source changed or is no longer visible.
    warning: str
    rating: int | None

    @property
    def name(self) -> str:
        return self.title or self.connection or "a source"


@dataclass(frozen=True, slots=True, kw_only=True)
class _ExchangePanel:
    id: UUID
    question: str
    #: The search query; empty if it is the question.
    searched: str
    html: SafeString
    state: Message.State
    #: Why the answer is incomplete, in a sentence; empty otherwise.
    problem: str
    withheld: bool
    refused: bool
    extractive: bool
    provider: str
    stale: bool
    rating: int | None
    trace: UUID | None
    notices: tuple[str, ...]
    doubts: int
    cited: tuple[_SourcePanel, ...]
    considered: tuple[_SourcePanel, ...]

    @property
    def is_open(self) -> bool:
        return self.state in {Message.State.WAITING, Message.State.WRITING}

    @property
    def is_retried(self) -> bool:
        return self.state in {Message.State.FAILED, Message.State.STOPPED}

    @property
    def spoken(self) -> str:
        if self.state is Message.State.FAILED:
            return f"The answer was interrupted. {self.problem}"
        if self.state is Message.State.STOPPED:
            return "The answer was stopped."
        if self.refused:
            return "Not found in your documents."
        return f"Answer ready, with {wording.counted(len(self.cited), 'source')}."


def exchange_panel(exchange: Exchange) -> _ExchangePanel:
    """Return one question and its answer, limited to what their user may read now."""
    answer = exchange.answer
    sources = {it.number: _source(it, answer.pk) for it in exchange.references}
    doubts = tuple(_doubts(exchange.unsupported, answer.pk))
    return _ExchangePanel(
        id=answer.pk,
        question=exchange.question,
        searched=exchange.standalone,
        html=marked_html(exchange.text, {number: _chip(it) for number, it in sources.items()}, doubts),
        state=exchange.state,
        problem=problem_text(exchange.problem) if exchange.state is Message.State.FAILED else "",
        withheld=exchange.withheld,
        refused=exchange.is_refused,
        extractive=answer.is_extractive,
        provider=answer.provider,
        stale=exchange.is_stale,
        rating=answer.feedback,
        trace=answer.record_id,
        notices=tuple(notice["text"] for notice in exchange.notices),
        doubts=len(doubts),
        cited=tuple(sources[it.number] for it in exchange.cited),
        considered=tuple(sources[it.number] for it in exchange.considered),
    )


def exchange_panels(exchanges: Iterable[Exchange]) -> tuple[_ExchangePanel, ...]:
    """Return a conversation's questions and answers."""
    return tuple(exchange_panel(exchange) for exchange in exchanges)


def readers_text(*, keeps_text: bool, days: int) -> str:
    """Return who can read the questions; `days` is how long the query log stores them, 0 for no limit."""
    if not keeps_text:
        return "Your questions are not stored in the query log. Only you can open this conversation."
    period = f" for {days} days" if days else ""
    return f"Admins can read your questions in the query log{period}."


def problem_text(code: str) -> str:
    """Return why an answer failed, in a sentence."""
    return _PROBLEMS.get(code, _PROBLEM)


def _source(reference: Reference, answer: UUID) -> _SourcePanel:
    line = " ".join(reference.text.split())
    excerpt = line if len(line) <= _EXCERPT_CHARACTERS else f"{line[:_EXCERPT_CHARACTERS].rsplit(' ', 1)[0]} \u2026"
    return _SourcePanel(
        anchor=f"source-{answer}-{reference.number}",
        number=reference.number,
        state=reference.state,
        address=document_url(reference.chunk, "") if reference.chunk else "",
        title=reference.title,
        connection=reference.connection,
        path=" \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} ".join(reference.heading_path),
        pages=wording.pages(*(reference.pages or (None, None))),
        score="" if reference.score is None else f"{reference.score:.2f}",
        excerpt=excerpt,
        warning=_WARNINGS.get(reference.state, ""),
        rating=reference.rating,
    )


def _chip(source: _SourcePanel) -> SafeString:
    """Return a citation: a link to the source in the list below the answer."""
    gone = "" if source.state is ReferenceState.CURRENT else " is-gone"
    label = f"Source {source.number}: {source.name}"
    chip = '<a class="citation cite{}" href="#{}" data-cite aria-label="{}">{}</a>'
    return format_html(chip, gone, source.anchor, label, source.number)


def _doubts(unsupported: Iterable[Mapping[str, Any]], answer: UUID) -> Iterator[Doubt]:
    sign = (
        '<span class="doubt-sign"><button class="doubt-button" type="button" aria-label="Not supported" '
        'aria-describedby="{0}">?</button><span class="doubt-why" role="tooltip" id="{0}">{1}</span></span>'
    )
    for number, it in enumerate(unsupported, start=1):
        html = format_html(sign, f"doubt-{answer}-{number}", it["explanation"])
        yield Doubt(it["start"], it["end"], html)
