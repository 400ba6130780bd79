"""One answer of a conversation: show, retry, rate, and read its passages."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse

from corecube import audit
from corecube.access import Principal, scope_for
from corecube.errors import CoreCubeError, InvalidRequestError, NotFoundError
from corecube.http import HtmxHttpRequest
from explorer.pages.chat.panels import passage_panel
from explorer.pages.chat.views import answering, own_answer, render_exchange
from explorer.viewer import user_page, viewer_of, wants_fragment
from retrieval.answers.conversations.asking import retry
from retrieval.answers.conversations.feedback import rate_answer, rate_citation
from retrieval.answers.conversations.reading import exchange_of
from retrieval.models import Message


@user_page("GET")
def answer(request: HtmxHttpRequest, conversation_id: UUID, message_id: UUID) -> HttpResponse:
    """Show one question with its current answer: the fragment that replaces a stream at its end."""
    found = own_answer(viewer_of(request), conversation_id, message_id)
    if not wants_fragment(request):
        return _back(conversation_id, message_id)
    return render_exchange(request, found)


@user_page("POST")
def retry_answer(request: HtmxHttpRequest, conversation_id: UUID, message_id: UUID) -> HttpResponse:
    """Answer a question again and replace its answer."""
    found = own_answer(viewer_of(request), conversation_id, message_id)
    return answering(request, retry(found))


@user_page("POST")
def rate(request: HtmxHttpRequest, conversation_id: UUID, message_id: UUID) -> HttpResponse:
    """Store a rating: `rating` is 1, -1, or 0 to clear it; `number` is a passage of the answer."""
    found = own_answer(viewer_of(request), conversation_id, message_id)
    try:
        thumbs = _rated(found, request.POST)
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


def _rated(answer: Message, sent: QueryDict) -> dict[str, Any]:
    """Store the rating, and return the context of its buttons; raise CoreCubeError."""
    number, rating = _number(sent, "number"), _number(sent, "rating") or None
    if number is None:
        rate_answer(answer, rating)
    else:
        rate_citation(answer, number, rating)
    return {"rating": rating, "number": number, "about": "this answer" if number is None else f"source {number}"}


@user_page("GET")
def passage(request: HtmxHttpRequest, conversation_id: UUID, message_id: UUID, number: int) -> HttpResponse:
    """Show a passage with its neighbours for the side panel; without scripts, redirect to its document.

    A passage that was deleted or is outside the viewer's scope is a 404.
    """
    viewer = viewer_of(request)
    exchange = exchange_of(own_answer(viewer, conversation_id, message_id), viewer)
    chunk = next((it.chunk for it in exchange.references if it.number == number), None)
    panel = passage_panel(scope_for(Principal(viewer)), chunk, number) if chunk else None
    if chunk is None or panel is None:
        raise Http404
    if not wants_fragment(request):
        return redirect(panel.address)
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
