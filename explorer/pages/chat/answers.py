"""One answer of a conversation: show, stream, stop, retry, rate, and read its passages."""

import json
import logging
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Any, Final
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseBase, HttpResponseRedirect, QueryDict, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from corecube import audit
from corecube.access import Principal, scope_for
from corecube.database import in_thread
from corecube.errors import CoreCubeError, InvalidRequestError, NotFoundError
from corecube.http import HtmxHttpRequest
from explorer.pages.chat.panels import passage_panel, problem_text
from explorer.pages.chat.views import answering, render_exchange
from explorer.viewer import user_page, viewer_of, wants_fragment
from retrieval.answers.conversations.asking import rate_answer, rate_citation, retry, stop
from retrieval.answers.conversations.reading import exchange_of
from retrieval.answers.conversations.shelf import answer_of
from retrieval.answers.conversations.writing import POLL_SECONDS, Writing, begin, claimed, fail, unclaim, written
from retrieval.answers.events import AnswerEvent, Cited, Done, Failed, Text
from retrieval.engine.types import Passage
from retrieval.llm.types import Notice
from retrieval.models import Message

logger = logging.getLogger(__name__)

KEEP_ALIVE_SECONDS: Final = 10.0
_KEEP_ALIVE: Final = b": keep-alive\n\n"


@user_page("GET")
def answer(request: HtmxHttpRequest, conversation_id: UUID, message_id: UUID) -> HttpResponse:
    """Show one question with its current answer: the fragment that replaces a stream at its end."""
    found = answer_of(viewer_of(request), conversation_id, message_id)
    if not wants_fragment(request):
        return _back(conversation_id, message_id)
    return render_exchange(request, found)


@user_page("POST")
def retry_answer(request: HtmxHttpRequest, conversation_id: UUID, message_id: UUID) -> HttpResponse:
    """Answer a question again and replace its answer."""
    found = answer_of(viewer_of(request), conversation_id, message_id)
    return answering(request, retry(found))


@user_page("POST")
def rate(request: HtmxHttpRequest, conversation_id: UUID, message_id: UUID) -> HttpResponse:
    """Store a rating: `rating` is 1, -1, or 0 to clear it; `number` is a passage of the answer."""
    found = answer_of(viewer_of(request), conversation_id, message_id)
    try:
        number, rating = _number(request.POST, "number"), _number(request.POST, "rating") or None
        if number is None:
            rate_answer(found, rating)
        else:
            rate_citation(found, number, rating)
        thumbs = {"rating": rating, "number": number, "about": "this answer" if number is None else f"source {number}"}
    except NotFoundError as error:
        raise Http404 from error
    except CoreCubeError as error:
        if wants_fragment(request):
            return HttpResponse(str(error), status=error.status, content_type="text/plain; charset=utf-8")
        messages.error(request, str(error))
        return _back(conversation_id, message_id)
    if not wants_fragment(request):
        return _back(conversation_id, message_id)
    return render(
        request, "explorer/chat/_thumbs.html", {"conversation": found.conversation, "exchange": found, **thumbs}
    )


@user_page("GET")
def passage(request: HtmxHttpRequest, conversation_id: UUID, message_id: UUID, number: int) -> HttpResponse:
    """Show a passage with its neighbours for the side panel; without scripts, redirect to its document.

    A passage that was deleted or is outside the viewer's scope is a 404.
    """
    viewer = viewer_of(request)
    exchange = exchange_of(answer_of(viewer, conversation_id, message_id), Principal(viewer))
    chunk = next((it.chunk for it in exchange.references if it.number == number), None)
    panel = passage_panel(scope_for(Principal(viewer)), chunk, number) if chunk else None
    if chunk is None or panel is None:
        raise Http404
    if not wants_fragment(request):
        return redirect(panel["address"])
    audit.record("document.read", actor=viewer, subject=str(chunk.document_id), passage=chunk.ordinal)
    return render(request, "explorer/chat/_passage.html", {"passage": panel})


def _back(conversation_id: UUID, message_id: UUID) -> HttpResponse:
    return HttpResponseRedirect(f"{reverse('explorer:conversation', args=[conversation_id])}#answer-{message_id}")


def _number(sent: QueryDict, name: str) -> int | None:
    given = sent.get(name, "")
    try:
        return int(given) if given else None
    except ValueError as error:
        raise InvalidRequestError(f"{name} must be a number.") from error


@user_page("GET")
def stream(request: HtmxHttpRequest, conversation_id: UUID, message_id: UUID) -> HttpResponseBase:
    """Write a waiting answer and stream its events; for any other answer send only that it is done.

    Reading it twice writes it once. Disconnecting stops the language model and stores the partial answer; during the
    search it leaves the answer waiting.
    """
    events = _answer(answer_of(viewer_of(request), conversation_id, message_id))
    headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
    return StreamingHttpResponse(events, content_type="text/event-stream; charset=utf-8", headers=headers)


@user_page("POST")
def stop_answer(request: HtmxHttpRequest, conversation_id: UUID, message_id: UUID) -> HttpResponse:
    """Stop an answer in any process, and its language model."""
    stop(answer_of(viewer_of(request), conversation_id, message_id))
    if wants_fragment(request):
        return HttpResponse(status=204)
    return _back(conversation_id, message_id)


async def _answer(answer: Message) -> AsyncGenerator[bytes, None]:
    """Yield the events of an answer while it is written. Nothing is sent after done or error."""
    if answer.state != Message.State.WAITING:
        yield _ending(answer, "done", state=answer.state)
        return
    try:
        if not await in_thread(claimed, answer):
            yield _ending(answer, "done", state=answer.state)
            return
        # Between its events a slow stream must not hold a pooled database connection.
        writing = await in_thread(begin, answer)
        async with aclosing(_writing(writing)) as events:
            async for event in events:
                yield event
    except Exception as error:
        logger.exception("chat.failed message=%s", answer.pk)
        yield _failure(answer, error.code if isinstance(error, CoreCubeError) else CoreCubeError.code)
    finally:
        # In the thread that may still be claiming it.
        await in_thread(unclaim, answer)


async def _writing(writing: Writing) -> AsyncGenerator[bytes, None]:
    """Yield the events from the search's on; the answer is stored by the last one, whatever fails."""
    heartbeats = 0
    try:
        yield _event("search", _found(writing))
        async with aclosing(written(writing)) as events:
            async for event in events:
                heartbeats = 0 if event is not None else heartbeats + 1
                if heartbeats and heartbeats * POLL_SECONDS % KEEP_ALIVE_SECONDS == 0:
                    yield _KEEP_ALIVE
                for name, data in _named(event):
                    yield _event(name, data)
    except Exception:
        # The status is sent already, so the error goes into the stream.
        logger.exception("chat.stream_failed message=%s", writing.message.pk)
        writing.problem = writing.problem or CoreCubeError.code
        await in_thread(fail, writing.message, writing.problem)
    # The answer is stored by now, so the browser fetches the finished one next.
    if writing.problem:
        yield _failure(writing.message, writing.problem)
        return
    done = writing.done
    ended = {"refused": bool(done and done.refused), "provider": done.provider if done else ""}
    yield _ending(writing.message, "done", state=writing.state.value, **ended)


def _found(writing: Writing) -> dict[str, Any]:
    searched = writing.rewriting.searched if writing.rewriting.is_rewritten else ""
    passages = [_passage(it, writing) for it in writing.answering.outcome.passages]
    return {"searched": searched, "passages": passages}


def _failure(answer: Message, code: str) -> bytes:
    return _ending(answer, "error", code=code, message=problem_text(code))


def _ending(answer: Message, name: str, **data: object) -> bytes:
    """Return the last event of an answer, with the address of its fragment."""
    return _event(name, {**data, "answer": reverse("explorer:chat_answer", args=[answer.conversation_id, answer.pk])})


def _named(event: AnswerEvent | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield an event's name and data, if the browser receives it before the end."""
    match event:
        case Text(text):
            yield "text", {"text": text}
        case Cited(citations):
            yield (
                "citation",
                {"citations": [{"number": it.number, "start": it.start, "end": it.end} for it in citations]},
            )
        case Notice():
            yield "notice", {"code": event.code, "text": event.text}
        case Done() | Failed() | None:
            return


def _passage(passage: Passage, writing: Writing) -> dict[str, Any]:
    facts, message = passage.hit.chunk, writing.message
    connection = writing.answering.outcome.state.scope.inclusion(facts.connection_id).connection
    return {
        "number": passage.number,
        "title": facts.title,
        "heading_path": list(facts.heading_path),
        "connection": connection.name,
        "score": None if passage.score is None else round(passage.score, 4),
        "panel": reverse("explorer:chat_passage", args=[message.conversation_id, message.pk, passage.number]),
    }


def _event(name: str, data: dict[str, Any]) -> bytes:
    return f"event: {name}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n".encode()
