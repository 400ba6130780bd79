"""The matrix of clearances, for admins: each change is saved immediately and can be undone."""

from typing import Final

from django.contrib import messages
from django.contrib.auth.models import Group
from django.db.models import Count
from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from corecube.errors import ConflictError
from corecube.grants import GrantChange, Holder, level_named, set_clearance
from corecube.http import HtmxHttpRequest
from corecube.models import AuditEvent, Compartment, Grant, User
from corecube.scope import Sensitivity
from explorer.pages.access.clearance_panels import (
    ChangeNote,
    cell,
    change_note,
    clearances_of,
    columns,
    earlier_change_note,
    people_note,
    row,
)
from explorer.viewer import admin_page, admins_only, viewer_of, wants_fragment

_MAX_DIGITS: Final = 18


@admin_page("GET")
def clearances(request: HtmxHttpRequest) -> HttpResponse:
    """Show the clearances of all groups, and of users with individual grants."""
    compartments = list(Compartment.objects.prefetch_related("connections"))
    grants = clearances_of(Grant.objects.all())
    groups = Group.objects.annotate(Count("user")).order_by("name")
    users = User.objects.filter(grants__isnull=False).distinct().order_by("username")
    context = {
        "section": "clearances",
        "columns": columns(compartments),
        "groups": [
            row(Holder.of(it), compartments, grants, note=people_note(it.user__count))  # type: ignore[attr-defined]  # annotated
            for it in groups
        ],
        "users": [row(Holder.of(it), compartments, grants, note=it.get_full_name()) for it in users],
        "origin": "clearances",
        "change": last_change(request),
    }
    return render(request, "explorer/access/clearances.html", context)


@require_POST
@admins_only
def change(request: HtmxHttpRequest) -> HttpResponse:
    """Set or remove a clearance; return the new cell with an undo."""
    compartment = get_object_or_404(Compartment, slug=request.POST.get("compartment", ""))
    holder = _holder(request.POST.get("kind", ""), request.POST.get("holder", ""))
    clearance, expected = (_level(request.POST.get(name, "")) for name in ("clearance", "was"))
    try:
        done = set_clearance(
            holder=holder, compartment=compartment, clearance=clearance, expected=expected, actor=viewer_of(request)
        )
    except ConflictError as error:
        return _answer(request, holder, compartment, ChangeNote(f"{error} Nothing was changed.", "bad"), 409)
    return _answer(request, holder, compartment, change_note(done), 200, done)


def _answer(
    request: HtmxHttpRequest,
    holder: Holder,
    compartment: Compartment,
    note: ChangeNote,
    status: int,
    done: GrantChange | None = None,
) -> HttpResponse:
    """Return the cell to htmx; redirect any other request back to its page."""
    origin = request.POST.get("origin", "")
    if not wants_fragment(request):
        (messages.error if done is None else messages.success)(request, note.text)
        query = f"?changed={done.event.pk}" if done and done.event else ""
        return HttpResponseRedirect(f"{_page(origin, holder, compartment)}{query}")
    grant = holder.grants.filter(compartment=compartment).first()
    level = None if grant is None else Sensitivity(grant.clearance)
    context = {"cell": cell(holder, compartment, level), "origin": origin, "change": note, "swapped": True}
    return render(request, "explorer/access/_cell_changed.html", context, status=status)


def _page(origin: str, holder: Holder, compartment: Compartment) -> str:
    if origin == "compartment":
        return reverse("explorer:compartment", args=[compartment.slug])
    if origin == "holder":
        return reverse(f"explorer:{holder.kind}", args=[holder.id])
    return reverse("explorer:clearances")


def last_change(request: HtmxHttpRequest) -> ChangeNote | None:
    """Return the note on the change named in the query string; None if its holder or compartment is gone."""
    event = AuditEvent.objects.filter(pk=_number(request.GET.get("changed", "")), action="grant.changed").first()
    if event is None:
        return None
    given = event.details.get("holder", {})
    compartment = Compartment.objects.filter(slug=event.details.get("compartment", "")).first()
    try:
        holder = _holder(given.get("kind", ""), str(given.get("id", "")))
    except Http404:
        return None
    return earlier_change_note(event, holder, compartment) if compartment else None


def _holder(kind: str, given: str) -> Holder:
    """Return the user or group with an id; raise Http404 for none."""
    if kind == "user":
        return Holder.of(get_object_or_404(User, pk=_number(given)))
    if kind == "group":
        return Holder.of(get_object_or_404(Group, pk=_number(given)))
    raise Http404


def _number(text: str) -> int:
    """Return a submitted id; 0, which no row has, for an invalid one."""
    return int(text) if text.isdecimal() and len(text) <= _MAX_DIGITS else 0


def _level(name: str) -> Sensitivity | None:
    try:
        return level_named(name)
    except KeyError as error:
        raise Http404 from error
