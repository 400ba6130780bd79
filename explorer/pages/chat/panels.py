"""The parts of the chat page: answers with citations and sources, the list, the choice of sources, and a passage."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from itertools import groupby
from typing import Any, Final
from uuid import UUID

from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from corecube.models import User
from corecube.scope import AccessScope, ConnectionFacts
from explorer import wording
from explorer.components.answers import Doubt, marked_html
from explorer.components.links import document_url
from explorer.viewer import whole_number
from explorer.wording import WORDS
from retrieval.answers.conversations.files import files_of
from retrieval.answers.conversations.reading import Exchange, Reference, ReferenceState
from retrieval.answers.conversations.shelf import conversations_of
from retrieval.engine.types import ChunkId
from retrieval.models import Chunk, Conversation, Message

_PROBLEM: Final = "Something went wrong while the answer was written."

PER_PAGE: Final = 60
_AROUND: Final = 1  #: Chunks before and after the cited one.
_WEEK: Final = timedelta(days=7)
_MONTH: Final = timedelta(days=30)


def exchange_panel(exchange: Exchange) -> dict[str, Any]:
    """Return one question and its answer, limited to what their user may read now."""
    answer = exchange.answer
    sources = {it.number: _source(it, answer.pk) for it in exchange.references}
    doubts = tuple(_doubts(exchange.unsupported, answer.pk))
    problem = problem_text(exchange.problem) if exchange.state is Message.State.FAILED else ""
    return {
        "read": exchange,
        "id": answer.pk,
        "is_open": exchange.state in {Message.State.WAITING, Message.State.WRITING},
        # Greetings and thanks are answered without a passage: there is nothing to rate or to look up.
        "is_about_documents": bool(exchange.references) or exchange.is_refused or not exchange.text,
        "is_retried": exchange.state in {Message.State.FAILED, Message.State.STOPPED},
        "spoken": _spoken(exchange, problem),
        "html": marked_html(exchange.text, {number: _chip(it) for number, it in sources.items()}, doubts),
        "problem": problem,
        "doubts": len(doubts),
        "cited": tuple(sources[it.number] for it in exchange.cited),
        "considered": tuple(sources[it.number] for it in exchange.considered),
    }


def _spoken(exchange: Exchange, problem: str) -> str:
    if exchange.state is Message.State.FAILED:
        return f"The answer was interrupted. {problem}"
    if exchange.state is Message.State.STOPPED:
        return "The answer was stopped."
    if exchange.is_refused:
        return "Not found in your documents."
    number = len(exchange.cited)
    return f"Answer ready, with {wording.counted(number, 'source')}." if number else "Answer ready."


def readers_text(*, keeps_text: bool, days: int, is_shared: bool) -> str:
    """Return who can read the questions; `days` is how long the query log stores them, 0 for no limit."""
    shared = " People with the link can read those that you shared." if is_shared else ""
    if not keeps_text:
        alone = "" if is_shared else " Only you can open this conversation."
        return f"Your questions are not stored in the query log.{alone}{shared}"
    period = f" for {days} days" if days else ""
    return f"Admins can read your questions in the query log{period}.{shared}"


def problem_text(code: str) -> str:
    """Return why an answer failed, in a sentence."""
    return WORDS["answer_problems"].get(code, _PROBLEM)


def _source(reference: Reference, answer: UUID) -> dict[str, Any]:
    return {
        "reference": reference,
        "name": reference.title or reference.connection or "a source",
        "anchor": f"source-{answer}-{reference.number}",
        "address": document_url(reference.chunk, "") if reference.chunk else "",
        "path": " \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} ".join(reference.heading_path),
        "pages": wording.pages(*(reference.pages or (None, None))),
        "score": "" if reference.score is None else f"{reference.score:.2f}",
        # A citation's card shows the part of it that supports the cited sentence.
        "text": reference.text if reference.cited else "",
        "warning": WORDS["reference_warnings"].get(reference.state, ""),
    }


def _chip(source: dict[str, Any]) -> SafeString:
    """Return a citation: a link to the source in the list below the answer."""
    number = source["reference"].number
    gone = "" if source["reference"].state is ReferenceState.CURRENT else " is-gone"
    chip = '<a class="citation cite{}" href="#{}" data-cite aria-label="{}">{}</a>'
    return format_html(chip, gone, source["anchor"], f"Source {number}: {source['name']}", number)


def _doubts(unsupported: Iterable[Mapping[str, Any]], answer: UUID) -> Iterator[Doubt]:
    sign = (
        '<span class="doubt-sign"><button class="doubt-button" type="button" aria-label="Not supported" '
        'aria-describedby="{0}">?</button><span class="doubt-why" role="tooltip" id="{0}">{1}</span></span>'
    )
    for number, it in enumerate(unsupported, start=1):
        html = format_html(sign, f"doubt-{answer}-{number}", it["explanation"])
        yield Doubt(it["start"], it["end"], html)


def shelf_of(viewer: User, find: str, *, page: str = "", now: datetime | None = None) -> dict[str, Any]:
    """Return the viewer's conversations for the list, the latest first; `more` counts those after this page."""
    found = conversations_of(viewer, find)
    number = whole_number(page, 1, digits=4)
    start = (max(number, 1) - 1) * PER_PAGE
    items = list(found[start : start + PER_PAGE])
    more = max(found.count() - start - PER_PAGE, 0) if len(items) == PER_PAGE else 0
    today = timezone.localdate(now)
    groups = groupby(items, key=lambda it: _heading(timezone.localdate(it.updated_at), today))
    history = [(heading, list(group)) for heading, group in groups]
    return {"history": history, "find": find, "more": more, "next_page": number + 1}


def _heading(day: date, today: date) -> str:
    if day >= today:
        return "Today"
    if day == today - timedelta(days=1):
        return "Yesterday"
    if day > today - _WEEK:
        return "Last 7 days"
    return "Last 30 days" if day > today - _MONTH else f"{day:%B %Y}"


def files_shown(conversation: Conversation | None) -> dict[str, Any]:
    """Return the files of a conversation; the list is loaded again while one is being read."""
    files = files_of(conversation) if conversation else ()
    return {"files": files, "is_reading": any(it.is_reading for it in files)}


def source_choices(
    scope: AccessScope, include: Collection[str], exclude: Collection[str]
) -> list[tuple[ConnectionFacts, bool]]:
    """Return the connections in scope, and whether a conversation uses each; an empty `include` means all."""
    found = (it.connection for it in scope.included if not it.connection.is_attached)
    return [(it, (not include or it.slug in include) and it.slug not in exclude) for it in found]


def scope_words(choices: Sequence[tuple[ConnectionFacts, bool]]) -> str:
    """Return the chosen sources in words: "All sources", "Handbook", "3 of 9 sources"."""
    chosen = [source for source, is_chosen in choices if is_chosen]
    if len(chosen) == len(choices):
        return "All sources"
    return chosen[0].name if len(chosen) == 1 else f"{len(chosen)} of {len(choices)} sources"


def passage_panel(scope: AccessScope, chunk_id: ChunkId, number: int) -> dict[str, Any] | None:
    """Return a passage with its neighbours; None if the scope has no such passage."""
    document_id, ordinal = chunk_id
    around = range(ordinal - _AROUND, ordinal + _AROUND + 1)
    own = Chunk.objects.filter(document_id=document_id, connection_id__in=scope.connection_ids, ordinal__in=around)
    chunks = list(own.select_related("document").defer("search", "document__metadata").order_by("ordinal"))
    cited = next((it for it in chunks if it.ordinal == ordinal), None)
    if cited is None:
        return None
    return {
        "number": number,
        "title": cited.document.title,
        "connection": scope.inclusion(cited.connection_id).connection.name,
        "path": " \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} ".join(cited.heading_path),
        "pages": wording.place(cited, cited.document.source_type),
        "address": document_url(chunk_id, ""),
        "blocks": tuple(_blocks(chunks, ordinal)),
    }


def _blocks(chunks: Iterable[Chunk], cited: int) -> Iterator[dict[str, Any]]:
    before: list[str] | None = None
    for chunk in chunks:
        heading = chunk.heading_path[-1] if chunk.heading_path and chunk.heading_path != before else ""
        yield {"heading": heading, "text": chunk.text, "is_cited": chunk.ordinal == cited}
        before = chunk.heading_path
