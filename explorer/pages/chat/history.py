"""A user's conversations: list, rename, delete, export."""

from typing import Final
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from corecube.errors import InvalidRequestError
from corecube.http import HtmxHttpRequest
from explorer import wording
from explorer.pages.chat.panels import shelf_of
from explorer.pages.chat.views import own_conversation
from explorer.viewer import user_page, viewer_of, wants_fragment
from retrieval.answers.conversations.export import as_json, as_markdown
from retrieval.answers.conversations.reading import exchanges_of
from retrieval.answers.conversations.shelf import delete_all, rename
from retrieval.models.document import id_in

_KINDS: Final = {
    "md": (as_markdown, "text/markdown; charset=utf-8"),
    "json": (as_json, "application/json; charset=utf-8"),
}


@user_page("GET")
def history(request: HtmxHttpRequest) -> HttpResponse:
    """List the viewer's conversations, the latest first; `find` searches their titles and questions."""
    find = request.GET.get("find", "")
    if not wants_fragment(request):
        return redirect(f"{reverse('explorer:chat')}?{urlencode({'find': find})}")
    context = shelf_of(viewer_of(request), find, page=request.GET.get("page", ""))
    return render(request, "explorer/chat/_history.html", context | {"current": id_in(request.GET.get("current", ""))})


@user_page("POST")
def rename_one(request: HtmxHttpRequest, conversation_id: UUID) -> HttpResponse:
    """Rename a conversation."""
    found = own_conversation(viewer_of(request), conversation_id)
    try:
        rename(found, request.POST.get("title", ""))
    except InvalidRequestError as error:
        messages.error(request, str(error))
    return redirect("explorer:conversation", conversation_id=conversation_id)


@user_page("POST")
def delete_one(request: HtmxHttpRequest, conversation_id: UUID) -> HttpResponse:
    """Delete a conversation permanently."""
    own_conversation(viewer_of(request), conversation_id).delete()
    messages.success(request, "Conversation deleted.")
    return redirect("explorer:chat")


@user_page("POST")
def delete_everything(request: HtmxHttpRequest) -> HttpResponse:
    """Delete all of the viewer's conversations if `sure` confirms it."""
    if request.POST.get("sure") != "yes":
        messages.error(request, "Select the checkbox to delete all conversations.")
    else:
        messages.success(request, f"Deleted {wording.counted(delete_all(viewer_of(request)), 'conversation')}.")
    return redirect("explorer:chat")


@user_page("GET")
def export(request: HtmxHttpRequest, conversation_id: UUID, kind: str) -> HttpResponse:
    """Download a conversation, limited to what its user may read now."""
    viewer = viewer_of(request)
    if kind not in _KINDS:
        raise Http404
    found = own_conversation(viewer, conversation_id)
    write, content_type = _KINDS[kind]
    response = HttpResponse(write(found, exchanges_of(found, viewer)), content_type=content_type)
    response.headers["Content-Disposition"] = f'attachment; filename="conversation-{found.pk}.{kind}"'
    return response
