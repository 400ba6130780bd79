"""The matrix of clearances, for admins: each change is saved immediately and can be undone."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from django.contrib import messages
from django.contrib.auth.models import Group
from django.db.models import Count
from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, render
from django.urls import reverse

from corecube.errors import ConflictError
from corecube.grants import GrantChange, Holder, level_name, level_named, set_clearance
from corecube.http import HtmxHttpRequest
from corecube.models import AuditEvent, Compartment, Grant, User
from corecube.scope import Sensitivity
from explorer import wording
from explorer.pages.access.confirm import AccessEffect, confirmation, effect_of, is_confirmed
from explorer.viewer import admin_action, admin_page, viewer_of, wants_fragment, whole_number
from explorer.wording import reach_summary

LEVELS: Final = ("none", *(level.name.lower() for level in Sensitivity))

#: Clearances by kind and id of the holder, and by compartment id.
Clearances = Mapping[tuple[str, int, int], Sensitivity]


@dataclass(frozen=True, slots=True)
class _ChangeNote:
    text: str
    tone: str = ""
    #: The current cell, and the level before the change; empty if there is nothing to undo.
    cell: dict[str, Any] | None = None
    before: str = ""
    #: What confirms the effect of an undo.
    undo_seen: str = ""


def clearances_of(grants: Iterable[Grant]) -> Clearances:
    """Return the clearances of grants by holder and compartment."""
    return {
        ("user" if grant.user_id else "group", grant.user_id or grant.group_id or 0, grant.compartment_id): Sensitivity(
            grant.clearance
        )
        for grant in grants
    }


def columns(compartments: Iterable[Compartment]) -> Iterator[tuple[Compartment, str]]:
    """Yield the compartments with the number of connections at each level; these must be prefetched."""
    for compartment in compartments:
        levels = [connection.sensitivity for connection in compartment.connections.all()]
        counts = ((levels.count(level), level.name.lower()) for level in Sensitivity)
        yield compartment, ", ".join(f"{count} {name}" for count, name in counts if count) or "no connections"


def row(holder: Holder, compartments: Iterable[Compartment], grants: Clearances, *, note: str = "") -> dict[str, Any]:
    """Return the row of a holder, with a cell for each compartment."""
    levels = ((it, level_name(grants.get((holder.kind, holder.id, it.pk)))) for it in compartments)
    return {"holder": holder, "note": note, "cells": tuple(cell(holder, *it) for it in levels)}


def cell(holder: Holder, compartment: Compartment, level: str) -> dict[str, Any]:
    """Return one clearance in the matrix."""
    return {
        "holder": holder,
        "compartment": compartment.name,
        "compartment_slug": compartment.slug,
        "key": f"{holder.kind}-{holder.id}-{compartment.slug}",  # The id in the page: "group-3-finance".
        "label": f"Clearance of {holder.label} on {compartment.name}",
        "level": level,
        "levels": LEVELS,
    }


def _change_note(
    holder: Holder, compartment: Compartment, before: str, after: str, reach: str = "", undo_seen: str = ""
) -> _ChangeNote:
    text = f"{holder.label} on {compartment.name}: {before} \N{RIGHTWARDS ARROW} {after}. {reach}".rstrip()
    return _ChangeNote(text, "good" if reach else "", cell(holder, compartment, after), before, undo_seen)


def level_of(value: int) -> str:
    """Return a stored sensitivity as text."""
    return wording.level(Sensitivity(value))


@admin_page("GET")
def clearances(request: HtmxHttpRequest) -> HttpResponse:
    """Show the clearances of all groups, and of users with individual grants."""
    compartments = list(Compartment.objects.listed().prefetch_related("connections"))
    grants = clearances_of(Grant.objects.all())
    groups = Group.objects.annotate(Count("user")).order_by("name")
    users = User.objects.filter(grants__compartment__in=compartments).distinct().order_by("username")
    context = {
        "columns": list(columns(compartments)),
        "groups": [
            row(Holder.of(it), compartments, grants, note=f"{members:,} {'member' if members == 1 else 'members'}")
            for it in groups
            for members in (it.user__count,)  # type: ignore[attr-defined]  # annotated
        ],
        "users": [row(Holder.of(it), compartments, grants, note=it.get_full_name()) for it in users],
        "origin": "clearances",
        "change": last_change(request),
    }
    return render(request, "explorer/access/clearances.html", context)


@admin_action
def change(request: HtmxHttpRequest) -> HttpResponse:
    """Set or remove a clearance; return the new cell with an undo."""
    compartment = get_object_or_404(Compartment.objects.listed(), slug=request.POST.get("compartment", ""))
    holder = _holder(request.POST.get("kind", ""), request.POST.get("holder", ""))
    clearance, expected = (_level(request.POST.get(name, "")) for name in ("clearance", "was"))
    save = partial(
        set_clearance,
        holder=holder,
        compartment=compartment,
        clearance=clearance,
        expected=expected,
        actor=viewer_of(request),
    )
    try:
        effect = effect_of(holder.people, save)
        if not is_confirmed(request, effect):
            return _confirmation(request, holder, compartment, effect)
        done = save()
    except ConflictError as error:
        return _answer(request, holder, compartment, _ChangeNote(f"{error} Nothing was changed.", "bad"), 409)
    before, after = level_name(done.before), level_name(done.after)
    note = _ChangeNote(f"{holder.label} on {compartment.name} is already {after}.")
    if done.event:
        note = _change_note(holder, compartment, before, after, reach_summary(done.reach), effect.inverse.token)
    return _answer(request, holder, compartment, note, 200, done)


def _confirmation(
    request: HtmxHttpRequest, holder: Holder, compartment: Compartment, effect: AccessEffect
) -> HttpResponse:
    """Return the unchanged cell to htmx, with a dialog that confirms the change; a page to any other request."""
    before, after = request.POST["was"], request.POST["clearance"]
    title = f"{holder.label} on {compartment.name}: {before} \N{RIGHTWARDS ARROW} {after}"
    origin = request.POST.get("origin", "")
    if not wants_fragment(request):
        return confirmation(request, effect, title=title, back=_page(origin, holder, compartment))
    context = {
        "cell": cell(holder, compartment, before),
        "origin": origin,
        "effect": effect,
        "title": title,
        "clearance": after,
        "swapped": True,
    }
    return render(request, "explorer/access/_cell_unconfirmed.html", context)


def _answer(
    request: HtmxHttpRequest,
    holder: Holder,
    compartment: Compartment,
    note: _ChangeNote,
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
    level = level_name(None if grant is None else Sensitivity(grant.clearance))
    context = {"cell": cell(holder, compartment, level), "origin": origin, "change": note, "swapped": True}
    return render(request, "explorer/access/_cell_changed.html", context, status=status)


def _page(origin: str, holder: Holder, compartment: Compartment) -> str:
    if origin == "compartment":
        return reverse("explorer:compartment", args=[compartment.slug])
    if origin == "holder":
        return reverse(f"explorer:{holder.kind}", args=[holder.id])
    return reverse("explorer:clearances")


def last_change(request: HtmxHttpRequest) -> _ChangeNote | None:
    """Return the note on the change named in the query string; None if its holder or compartment is gone."""
    event = AuditEvent.objects.filter(
        pk=whole_number(request.GET.get("changed", ""), 0), action="grant.changed"
    ).first()
    if event is None:
        return None
    given = event.details.get("holder", {})
    compartment = Compartment.objects.listed().filter(slug=event.details.get("compartment", "")).first()
    try:
        holder = _holder(given.get("kind", ""), str(given.get("id", "")))
    except Http404:
        return None
    before, after = (str(event.details.get(name)) for name in ("before", "after"))
    return _change_note(holder, compartment, before, after) if compartment else None


def _holder(kind: str, given: str) -> Holder:
    if kind == "user":
        return Holder.of(get_object_or_404(User, pk=whole_number(given, 0)))
    if kind == "group":
        return Holder.of(get_object_or_404(Group, pk=whole_number(given, 0)))
    raise Http404


def _level(name: str) -> Sensitivity | None:
    try:
        return level_named(name)
    except KeyError as error:
        raise Http404 from error
