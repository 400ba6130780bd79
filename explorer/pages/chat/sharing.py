"""Share a conversation by a link, revoke the link, and the page that its readers see."""

from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import redirect, render

from corecube.http import HtmxHttpRequest
from explorer.pages.chat.panels import exchange_panel
from explorer.viewer import user_page, viewer_of, wants_fragment
from retrieval.answers.conversations.sharing import (
    questions_not_shared,
    share,
    shared_conversation,
    shared_exchanges,
    stop_sharing,
)
from retrieval.answers.conversations.shelf import conversation_of
from retrieval.models import Conversation


@user_page("POST")
def share_one(request: HtmxHttpRequest, conversation_id: UUID) -> HttpResponse:
    """Share a conversation's questions so far, or also those since it was shared."""
    found = conversation_of(viewer_of(request), conversation_id)
    share(found)
    return _share_panel(request, found)


@user_page("POST")
def stop_sharing_one(request: HtmxHttpRequest, conversation_id: UUID) -> HttpResponse:
    """Revoke the link of a conversation."""
    found = conversation_of(viewer_of(request), conversation_id)
    stop_sharing(found)
    return _share_panel(request, found)


def _share_panel(request: HtmxHttpRequest, found: Conversation) -> HttpResponse:
    if not wants_fragment(request):
        return redirect("explorer:conversation", conversation_id=found.pk)
    context = {"conversation": found, "not_shared": questions_not_shared(found), "is_share_open": True}
    return render(request, "explorer/chat/_share.html", context)


@user_page("GET", "HEAD")
def shared(request: HtmxHttpRequest, link: UUID) -> HttpResponse:
    """Show a shared conversation, limited to what its reader may read now; a 404 for a revoked link."""
    reader = viewer_of(request)
    found = shared_conversation(link, reader)
    exchanges = [
        {"panel": exchange_panel(it.exchange), "left_out": it.left_out} for it in shared_exchanges(found, reader)
    ]
    context = {"conversation": found, "exchanges": exchanges, "is_owner": found.user_id == reader.pk}
    return render(request, "explorer/chat/shared.html", context)
