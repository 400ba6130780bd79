"""Compartments and sensitivity levels, for admins."""

from collections.abc import Iterable

from django.contrib import messages
from django.db.models import Count
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_http_methods

from corecube.compartments import change_compartment, consequences, create_compartment, delete_compartment
from corecube.errors import CoreCubeError
from corecube.http import HtmxHttpRequest
from corecube.models import Compartment, Connection, User
from corecube.reach import reach_of
from explorer.pages.access.clearance_panels import cell, clearances_of
from explorer.pages.access.clearances import last_change
from explorer.pages.access.compartment_panels import CompartmentRow, compartment_row, level_rows
from explorer.pages.access.forms import CompartmentForm
from explorer.viewer import admins_only, viewer_of
from retrieval.models import Document


@require_GET
@admins_only
def compartments(request: HtmxHttpRequest) -> HttpResponse:
    """List the compartments and sensitivity levels."""
    found = Compartment.objects.prefetch_related("connections", "grants__user", "grants__group")
    context = {
        "section": "compartments",
        "rows": _rows(found),
        "levels": level_rows(Connection.objects.values_list("sensitivity", flat=True)),
    }
    return render(request, "explorer/access/compartments.html", context)


@require_http_methods(["GET", "POST"])
@admins_only
def new_compartment(request: HtmxHttpRequest) -> HttpResponse:
    """Add a compartment."""
    form = CompartmentForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            made = create_compartment(**form.cleaned_data, actor=viewer_of(request))
        except CoreCubeError as error:
            form.add_error("name", str(error))
        else:
            messages.success(request, f"{made.name} was added. Nobody can see it until you give a clearance.")
            return redirect("explorer:compartment", slug=made.slug)
    context = {"section": "compartments", "form": form}
    return render(request, "explorer/access/compartment_new.html", context, status=422 if form.errors else 200)


@require_http_methods(["GET", "POST"])
@admins_only
def compartment(request: HtmxHttpRequest, slug: str) -> HttpResponse:
    """Show a compartment; a POST changes its name and description."""
    found = get_object_or_404(
        Compartment.objects.prefetch_related("connections", "grants__user", "grants__group"), slug=slug
    )
    form = CompartmentForm(request.POST or None, initial={"name": found.name, "description": found.description})
    if request.method == "POST" and form.is_valid():
        change_compartment(found, **form.cleaned_data, actor=viewer_of(request))
        messages.success(request, "The compartment was saved.")
        return redirect("explorer:compartment", slug=slug)
    row = _rows([found], with_people=True)[0]
    levels = clearances_of(found.grants.all())
    context = {
        "section": "compartments",
        "compartment": row,
        "cells": [cell(line.holder, found, levels[line.holder.kind, line.holder.id, found.pk]) for line in row.holders],
        "origin": "compartment",
        "change": last_change(request),
        "form": form,
    }
    return render(request, "explorer/access/compartment.html", context, status=form.status)


@require_http_methods(["GET", "POST"])
@admins_only
def delete(request: HtmxHttpRequest, slug: str) -> HttpResponse:
    """Show the consequences of deleting a compartment; a POST deletes it."""
    found = get_object_or_404(Compartment, slug=slug)
    if request.method == "POST":
        try:
            deleted = delete_compartment(found, actor=viewer_of(request))
        except CoreCubeError as error:
            messages.error(request, str(error))
            return redirect("explorer:compartment", slug=slug)
        revoked = f" Revoked API keys limited to it: {deleted.keys}." if deleted.keys else ""
        messages.success(request, f"{found.name} was deleted.{revoked}")
        return redirect("explorer:compartments")
    context = {"section": "compartments", "compartment": found, "consequences": consequences(found)}
    return render(request, "explorer/access/compartment_delete.html", context)


def _rows(found: Iterable[Compartment], *, with_people: bool = False) -> list[CompartmentRow]:
    """Return rows, on request with the number of users who can see each connection."""
    shown = list(found)
    counted = Document.objects.filter(connection__compartment__in=shown).values_list("connection_id")
    documents = dict(counted.annotate(Count("pk")))
    reach = reach_of(User.objects.all()) if with_people else {}
    return [compartment_row(it, documents, reach) for it in shown]
