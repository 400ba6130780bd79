"""Create, change and delete connections, for admins."""

from copy import copy
from dataclasses import dataclass
from typing import Final

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.debug import sensitive_post_parameters
from django_htmx.http import HttpResponseClientRedirect

from corecube.compartments import create_compartment
from corecube.connections import InvalidConnectionError, change_connection, checked, create_connection
from corecube.connectors.kinds import KINDS
from corecube.connectors.types import Capability
from corecube.database import atomic_change
from corecube.errors import ConflictError, InvalidRequestError
from corecube.grants import Holder, set_clearance
from corecube.http import HtmxHttpRequest
from corecube.models import Connection, User
from corecube.reach import AccessChange, ConnectionAccess, access_change, access_to
from corecube.scope import FreshnessBasis, Sensitivity
from explorer.pages.connections.forms import ConnectionForm, DeleteConnectionForm
from explorer.pages.connections.views import access_summary, check_rows, wizard_steps
from explorer.viewer import admin_page, render_page, viewer_of, wants_fragment, whole_number
from explorer.wording import counted
from retrieval.ingest.enrich.wants import default_enrichment
from retrieval.ingest.services import delete_connection, queue_sync, stored_counts

_SOURCE_FIELDS: Final = ("config_", "secret_", "drop_")
_DAILY_MINUTES: Final = 24 * 60
_NO_CHANGE: Final = AccessChange(ConnectionAccess((), ()), ConnectionAccess((), ()))


@dataclass(frozen=True, slots=True)
class _Attempt:
    capabilities: tuple[Capability, ...] = ()
    access_change: AccessChange | None = None
    is_saved: bool = False


@admin_page("GET", may_cache=True)
def new_connection(request: HtmxHttpRequest) -> HttpResponse:
    """List the kinds of connections to choose from."""
    context = {"kinds": KINDS.values(), "wizard": wizard_steps("kind", is_read=True)}
    return render(request, "explorer/connections/connection_kinds.html", context)


@sensitive_post_parameters()
@admin_page("GET", "POST", varies=True)
def new_connection_of(request: HtmxHttpRequest, kind: str) -> HttpResponse:
    """Test or add a connection of a kind; a new connection is synced at once, unless documents are sent to it."""
    if kind not in KINDS:
        raise Http404
    minutes = None if KINDS[kind].receives_documents else _DAILY_MINUTES
    connection = Connection(kind=kind, freshness_basis=FreshnessBasis.MODIFIED.value, sync_every_minutes=minutes)
    connection.enrichment = default_enrichment(connection)
    return _edited(request, connection)


@sensitive_post_parameters()
@admin_page("GET", "POST", varies=True)
def edit_connection(request: HtmxHttpRequest, slug: str) -> HttpResponse:
    """Test or save the settings of a connection."""
    connection = get_object_or_404(Connection.objects.listed().select_related("compartment"), slug=slug)
    if connection.kind not in KINDS:
        raise Http404
    return _edited(request, connection)


@admin_page("GET", may_cache=True)
def connection_access(request: HtmxHttpRequest, slug: str = "") -> HttpResponse:
    """Show who could see a connection with these settings and, for a stored one, who would gain or lose access."""
    before = get_object_or_404(Connection.objects.listed(), slug=slug) if slug else None
    compartment = whole_number(request.GET.get("compartment", ""), 0)
    sensitivity = whole_number(request.GET.get("sensitivity", ""), -1)
    is_added = before is None and bool(request.GET.get("new_compartment", "").strip())
    context: dict[str, object] = {"is_new": before is None, "is_swapped": True, "compartment_is_added": is_added}
    if not is_added and compartment and sensitivity in set(Sensitivity):
        context |= _access_context(_access_change(before, compartment, sensitivity), compartment, sensitivity)
    return render(request, "explorer/connections/_connection_access.html", context)


@admin_page("GET", "POST")
def remove_connection(request: HtmxHttpRequest, slug: str) -> HttpResponse:
    """Show what is deleted with a connection; a POST with the name entered deletes it."""
    connection = get_object_or_404(Connection.objects.listed().select_related("compartment"), slug=slug)
    form = DeleteConnectionForm(request.POST or None, expected=connection.name)
    if request.method == "POST" and form.is_valid():
        documents, chunks = delete_connection(connection, actor=viewer_of(request))
        deleted = f"{counted(documents, 'document')} and {counted(chunks, 'chunk')}"
        messages.success(request, f"{connection.name} was deleted with {deleted}.")
        return redirect("explorer:connections")
    documents, chunks = stored_counts(connection)
    context = {
        "connection": connection,
        "form": form,
        "documents": documents,
        "chunks": chunks,
        "syncs": connection.syncs.count(),
        "access": access_summary(access_to(connection.compartment_id, connection.sensitivity)),
    }
    return render(request, "explorer/connections/connection_delete.html", context, status=422 if form.errors else 200)


def _edited(request: HtmxHttpRequest, connection: Connection) -> HttpResponse:
    """Return the form, with the result of a test if any, or redirect to the saved connection."""
    # The form writes into the connection, so its stored values are copied first.
    stored = copy(connection) if connection.pk else None
    form = ConnectionForm(request.POST if request.method == "POST" else None, instance=connection)
    attempt = _Attempt()
    try:
        if request.method == "POST" and _may_attempt(request, form):
            attempt = _attempt(request, form, stored)
    except ConflictError as error:
        if stored:
            # Someone saved the connection while the source was tested: show the form as stale.
            return _edited(request, get_object_or_404(Connection.objects.select_related("compartment"), pk=stored.pk))
        form.add_error(None, str(error))
    if attempt.is_saved:
        page = reverse("explorer:connection" if stored else "explorer:first_sync", args=[form.instance.slug])
        return HttpResponseClientRedirect(page) if wants_fragment(request) else redirect(page)
    is_check = request.POST.get("do") == "check"
    is_refused = bool(form.errors) or (request.method == "POST" and not is_check)
    page, fragment = "explorer/connections/connection_edit.html", "explorer/connections/_connection_form.html"
    context = _form_context(form, stored, attempt) | {
        "access_confirmed": request.POST.get("access_confirmed") == "yes",
        "anyway": request.POST.get("anyway") == "yes",
        "is_check": is_check,
        "is_refused": is_refused,
    }
    return render_page(request, page, fragment, context, status=form.status if form.errors or not is_refused else 422)


def _may_attempt(request: HtmxHttpRequest, form: ConnectionForm) -> bool:
    """Return whether the form is valid; for a test of the source, only what describes it has to be."""
    if request.POST.get("do") == "check":
        form.check_source_only()
    return not form.errors


def _attempt(request: HtmxHttpRequest, form: ConnectionForm, stored: Connection | None) -> _Attempt:
    """Test or save; saving despite a failed test or with a change of access needs a confirmation for each."""
    change = _access_change(stored, form.instance.compartment_id, form.instance.sensitivity) if stored else None
    is_unconfirmed = bool(change) and request.POST.get("access_confirmed") != "yes"
    try:
        if request.POST.get("do") == "check":
            return _Attempt(checked(form.instance, form.secrets), change)
        is_new_source = stored is None or any(name.startswith(_SOURCE_FIELDS) for name in form.changed_data)
        is_forced = request.POST.get("anyway") == "yes"
        capabilities = checked(form.instance, form.secrets) if is_new_source and not is_forced else ()
        if is_unconfirmed or not all(it.ok for it in capabilities):
            return _Attempt(capabilities, change)
        _save(request, form, stored, may_sync=not is_forced)
    except InvalidConnectionError as error:
        form.add_error(None, str(error))
        return _Attempt(access_change=change)
    except InvalidRequestError as error:
        form.add_error("new_compartment", str(error))
        return _Attempt(access_change=change)
    return _Attempt(is_saved=True)


def _save(request: HtmxHttpRequest, form: ConnectionForm, stored: Connection | None, *, may_sync: bool) -> None:
    viewer = viewer_of(request)
    connection = form.instance
    if stored:
        changed = change_connection(connection, form.secrets, actor=viewer, expected=stored)
        messages.success(request, f"{connection.name} was saved." if changed else "Nothing was changed.")
        return
    with atomic_change():
        if form.new_compartment:
            _add_compartment(connection, form.new_compartment, viewer)
        create_connection(connection, form.secrets, actor=viewer)
    if may_sync and not form.kind.receives_documents:
        queue_sync(connection, actor=viewer)


def _add_compartment(connection: Connection, name: str, viewer: User) -> None:
    """Add the compartment of a new connection, with a clearance for its admin."""
    made = create_compartment(name=name, description="", actor=viewer)
    clearance = Sensitivity(connection.sensitivity)
    set_clearance(holder=Holder.of(viewer), compartment=made, clearance=clearance, expected=None, actor=viewer)
    connection.compartment = made


def _form_context(form: ConnectionForm, stored: Connection | None, attempt: _Attempt) -> dict[str, object]:
    slug = stored.slug if stored else ""
    path = reverse("explorer:edit_connection", args=[slug]) if stored else ""
    context: dict[str, object] = {
        "form": form,
        "kind": form.kind,
        "connection": stored,
        "is_new": stored is None,
        "wizard": None if stored else wizard_steps("source", is_read=not form.kind.receives_documents),
        "action": path or reverse("explorer:new_connection_of", args=[form.kind.name]),
        "check": check_rows(attempt.capabilities),
        "same_source": ", ".join(form.same_source()) if attempt.capabilities else "",
        "check_failed": bool(attempt.capabilities) and not all(it.ok for it in attempt.capabilities),
    }
    compartment, sensitivity = form.instance.compartment_id, form.instance.sensitivity
    if compartment and sensitivity in set(Sensitivity):
        context |= _access_context(attempt.access_change or _NO_CHANGE, compartment, sensitivity)
    return context


def _access_change(before: Connection | None, compartment: int, sensitivity: int) -> AccessChange:
    after = access_to(compartment, sensitivity)
    return access_change(access_to(before.compartment_id, before.sensitivity) if before else after, after)


def _access_context(change: AccessChange, compartment: int, sensitivity: int) -> dict[str, object]:
    return {
        "access": access_summary(access_to(compartment, sensitivity)),
        "access_changes": bool(change),
        "gaining": access_summary(change.gaining),
        "losing": access_summary(change.losing),
    }
