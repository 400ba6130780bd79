"""Files attached to a conversation: added, listed and removed."""

from uuid import UUID

from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse

from corecube.errors import CoreCubeError, InvalidRequestError
from corecube.http import HtmxHttpRequest
from explorer.pages.chat.panels import files_shown
from explorer.viewer import user_page, viewer_of, wants_fragment
from retrieval.answers.conversations.asking import start
from retrieval.answers.conversations.files import attach, detach
from retrieval.answers.conversations.shelf import conversation_of
from retrieval.models import Conversation
from retrieval.presets.catalog import DEFAULT_PRESET


@user_page("POST")
def attach_first(request: HtmxHttpRequest) -> HttpResponse:
    """Start a conversation with files."""
    return _attached(request, None)


@user_page("GET", "POST")
def conversation_files(request: HtmxHttpRequest, conversation_id: UUID) -> HttpResponse:
    """List a conversation's files, or add some; a 404 for another user's."""
    found = conversation_of(viewer_of(request), conversation_id)
    return _listed(request, found) if request.method == "GET" else _attached(request, found)


@user_page("POST")
def remove_file(request: HtmxHttpRequest, conversation_id: UUID) -> HttpResponse:
    """Remove the file `name` from a conversation."""
    found = conversation_of(viewer_of(request), conversation_id)
    detach(found, request.POST.get("name", ""))
    return _listed(request, found)


def _attached(request: HtmxHttpRequest, found: Conversation | None) -> HttpResponse:
    """Attach files one after the other, up to the first that is refused."""
    try:
        files = request.FILES.getlist("files")
        if not files:
            raise InvalidRequestError("Select a file.")
        found = found or start(viewer_of(request), preset=request.POST.get("preset", DEFAULT_PRESET))
        for file in files:
            attach(found, file.name or "", file.read())
    except CoreCubeError as error:
        return HttpResponse(str(error), status=error.status, content_type="text/plain; charset=utf-8")
    return _listed(request, found)


def _listed(request: HtmxHttpRequest, found: Conversation) -> HttpResponse:
    page = reverse("explorer:conversation", args=[found.pk])
    if not wants_fragment(request):
        return HttpResponseRedirect(page)
    context = {"conversation": found, **files_shown(found)}
    response = render(request, "explorer/chat/_files.html", context)
    response.headers["HX-Push-Url"] = page
    return response
