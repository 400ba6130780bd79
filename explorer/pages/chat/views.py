"""The chat page: a conversation with its questions, and the list of conversations."""

import logging
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse

from corecube.access import Principal, ScopeRequest, scope_for
from corecube.errors import CoreCubeError, InvalidRequestError, NotFoundError
from corecube.http import HtmxHttpRequest
from corecube.models import User
from corecube.scope import AccessScope
from explorer import wording
from explorer.pages.chat.panels import exchange_panel, files_shown, readers_text, scope_words, shelf_of, source_choices
from explorer.pages.chat.suggestions import suggestions_for
from explorer.viewer import errors_shown, user_page, viewer_of, wants_fragment
from retrieval.answers.conversations.asking import ask, change, start
from retrieval.answers.conversations.export import as_json, as_markdown
from retrieval.answers.conversations.reading import exchange_of, exchanges_of
from retrieval.answers.conversations.sharing import questions_not_shared
from retrieval.answers.conversations.shelf import conversation_of, delete_all, rename
from retrieval.answers.conversations.writing import begin, claimed, finished
from retrieval.models import Conversation, Message
from retrieval.models.document import id_in
from retrieval.presets.catalog import DEFAULT_PRESET, PRESETS, TUNED

logger = logging.getLogger(__name__)
_KINDS: Final = {
    "md": (as_markdown, "text/markdown; charset=utf-8"),
    "json": (as_json, "application/json; charset=utf-8"),
}


@user_page("GET", "HEAD", "POST")
def new(request: HtmxHttpRequest) -> HttpResponse:
    """Show an empty page with `q` filled in; a POST starts a conversation with its question."""
    viewer = viewer_of(request)
    if request.method != "POST":
        return render(request, "explorer/chat/chat.html", _page_context(viewer, None, request.GET))
    try:
        narrowing = _narrowing(request.POST, viewer) or ScopeRequest()
        # A refused question creates no conversation.
        with transaction.atomic():
            begun = start(viewer, preset=request.POST.get("preset", DEFAULT_PRESET), narrowing=narrowing)
            asked = ask(begun, _question(request.POST))
    except CoreCubeError as error:
        return _refused(request, None, error)
    return answering(request, asked)


@user_page("GET", "HEAD", "POST")
def conversation(request: HtmxHttpRequest, conversation_id: UUID) -> HttpResponse:
    """Show a conversation, limited to what its user may read now, or add a question; a 404 for another user's.

    A question can change the preset or the sources from then on.
    """
    viewer = viewer_of(request)
    found = conversation_of(viewer, conversation_id)
    if request.method != "POST":
        return render(request, "explorer/chat/chat.html", _page_context(viewer, found, request.GET))
    try:
        change(found, preset=request.POST.get("preset"), narrowing=_narrowing(request.POST, viewer))
        asked = ask(found, _question(request.POST))
    except CoreCubeError as error:
        return _refused(request, found, error)
    return answering(request, asked)


def answering(request: HtmxHttpRequest, answer: Message) -> HttpResponse:
    """Return the exchange whose answer the browser reads as events, with the page's address in `HX-Push-Url`.

    Without scripts, the answer is completed before the page is shown.
    """
    page = reverse("explorer:conversation", args=[answer.conversation_id])
    if wants_fragment(request):
        response = render_exchange(request, answer)
        response.headers["HX-Push-Url"] = page
        return response
    if claimed(answer):
        try:
            finished(begin(answer))
        except CoreCubeError:
            logger.exception("chat.failed message=%s", answer.pk)
    return HttpResponseRedirect(f"{page}#answer-{answer.pk}")


def render_exchange(request: HtmxHttpRequest, answer: Message) -> HttpResponse:
    """Return the fragment of one question and its answer."""
    panel = exchange_panel(exchange_of(answer, Principal(viewer_of(request))))
    context = {"exchange": panel, "conversation": answer.conversation}
    return render(request, "explorer/chat/_exchange.html", context)


def _refused(request: HtmxHttpRequest, found: Conversation | None, error: CoreCubeError) -> HttpResponse:
    """Return why a question was refused: as plain text for the form, else in the page with the typed text."""
    if isinstance(error, NotFoundError):
        raise Http404 from error
    if wants_fragment(request):
        return HttpResponse(str(error), status=error.status, content_type="text/plain; charset=utf-8")
    page = _page_context(viewer_of(request), found, request.POST)
    return render(request, "explorer/chat/chat.html", page | {"failure": str(error)}, status=error.status)


def _page_context(viewer: User, found: Conversation | None, sent: QueryDict) -> dict[str, Any]:
    scope = scope_for(Principal(viewer))
    exchanges = tuple(exchange_panel(it) for it in exchanges_of(found, Principal(viewer))) if found else ()
    narrowing = _sent_narrowing(scope, sent) or (found.narrowing if found else {})
    choices = source_choices(scope, narrowing.get("include", ()), narrowing.get("exclude", ()))
    preset = sent.get("preset") or (found.preset if found else DEFAULT_PRESET)
    is_narrowed = not all(is_chosen for _, is_chosen in choices)
    return {
        "conversation": found,
        "exchanges": exchanges,
        "asked": sent.get("q", ""),
        "failure": "",
        # Reference versions are for comparing.
        "presets": [
            (it, wording.preset_title(it.name))
            for it in PRESETS.values()
            if viewer.is_admin or it.name in {*TUNED, preset}
        ],
        "chosen_preset": preset,
        "max_query_length": settings.CORECUBE_MAX_QUERY_CHARACTERS,
        "readers": readers_text(
            keeps_text=settings.CORECUBE_KEEP_QUERY_TEXT,
            days=settings.CORECUBE_KEEP_SEARCHES_DAYS,
            is_shared=bool(found and found.shared_as),
        ),
        "is_narrowed": is_narrowed,
        "examples": () if exchanges or is_narrowed else suggestions_for(viewer, scope),
        "current": found.pk if found else None,
        "not_shared": questions_not_shared(found) if found else 0,
        "sources": choices,
        **files_shown(found),
        "scope_words": scope_words(choices),
        **shelf_of(viewer, sent.get("find", "")),
    }


def _sent_narrowing(scope: AccessScope, sent: QueryDict) -> dict[str, list[str]]:
    """Return the narrowing to the selected sources; empty if the form was not sent."""
    if sent.get("narrowed") != "1":
        return {}
    selected = set(sent.getlist("source"))
    return {"exclude": [it.slug for it, _ in source_choices(scope, (), ()) if it.slug not in selected]}


def _question(sent: QueryDict) -> str:
    return sent.get("example") or sent.get("q", "")


def _narrowing(sent: QueryDict, viewer: User) -> ScopeRequest | None:
    """Return the selected sources; None if the form had none to select. All of them mean no narrowing."""
    if sent.get("narrowed") != "1":
        return None
    selected = tuple(dict.fromkeys(sent.getlist("source")))
    visible = {it.slug for it, _ in source_choices(scope_for(Principal(viewer)), (), ())}
    if not selected and visible:
        raise InvalidRequestError("Select at least one source.")
    return ScopeRequest() if visible <= set(selected) else ScopeRequest(include=selected)


@user_page("GET")
def history(request: HtmxHttpRequest) -> HttpResponse:
    """List the viewer's conversations, the latest first; `find` searches their titles and questions.

    `bar` adds what can be done with the current one, for the title bar.
    """
    viewer, find = viewer_of(request), request.GET.get("find", "")
    if not wants_fragment(request):
        return redirect(f"{reverse('explorer:chat')}?{urlencode({'find': find})}")
    current = id_in(request.GET.get("current", ""))
    context = shelf_of(viewer, find, page=request.GET.get("page", "")) | {"current": current}
    if current and request.GET.get("bar") == "1":
        found = conversation_of(viewer, current)
        context |= {"conversation": found, "not_shared": questions_not_shared(found), "with_bar": True}
    return render(request, "explorer/chat/_history.html", context)


@user_page("POST")
def rename_one(request: HtmxHttpRequest, conversation_id: UUID) -> HttpResponse:
    """Rename a conversation."""
    found = conversation_of(viewer_of(request), conversation_id)
    with errors_shown(request):
        rename(found, request.POST.get("title", ""))
    return redirect("explorer:conversation", conversation_id=conversation_id)


@user_page("POST")
def delete_one(request: HtmxHttpRequest, conversation_id: UUID) -> HttpResponse:
    """Delete a conversation permanently."""
    conversation_of(viewer_of(request), conversation_id).delete()
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
    found = conversation_of(viewer, conversation_id)
    write, content_type = _KINDS[kind]
    response = HttpResponse(write(found, exchanges_of(found, Principal(viewer))), content_type=content_type)
    response.headers["Content-Disposition"] = f'attachment; filename="conversation-{found.pk}.{kind}"'
    return response
