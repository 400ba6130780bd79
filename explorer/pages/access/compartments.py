"""Compartments and sensitivity levels, for admins."""

from collections.abc import Iterable, Mapping
from typing import Any

from django.contrib import messages
from django.db.models import Count
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from corecube.compartments import change_compartment, consequences, create_compartment, delete_compartment
from corecube.errors import CoreCubeError
from corecube.grants import Holder, level_name
from corecube.http import HtmxHttpRequest
from corecube.models import Compartment, Connection, Grant, User
from corecube.reach import Reach, reach_of
from corecube.scope import Sensitivity
from explorer.pages.access.clearances import cell, clearances_of, last_change, level_of
from explorer.pages.access.forms import CompartmentForm
from explorer.viewer import admin_page, viewer_of
from explorer.wording import WORDS
from retrieval.models import Document


def _compartment_row(compartment: Compartment, documents: Mapping[int, int], reach: Reach) -> dict[str, Any]:
    """Return a compartment's row; its connections and grants must be prefetched."""
    lines: tuple[dict[str, Any], ...] = tuple(
        {
            "connection": it,
            "sensitivity": level_of(it.sensitivity),
            "documents": documents.get(it.pk, 0),
            "people": sum(it.pk in seen for seen in reach.values()),
        }
        for it in compartment.connections.all()
    )
    holders = [_holder(grant) for grant in compartment.grants.all()]
    return {
        "compartment": compartment,
        "connections": lines,
        "documents": sum(line["documents"] for line in lines),
        "holders": tuple(sorted(holders, key=lambda it: (it[0].kind, it[0].name))),
    }


def _holder(grant: Grant) -> tuple[Holder, str]:
    owner = grant.user or grant.group
    if owner is None:
        raise ValueError("A grant names either a user or a group.")
    return Holder.of(owner), level_of(grant.clearance)


@admin_page("GET", may_cache=True)
def compartments(request: HtmxHttpRequest) -> HttpResponse:
    """List the compartments and sensitivity levels."""
    found = Compartment.objects.listed().prefetch_related("connections", "grants__user", "grants__group")
    levels = list(Connection.objects.listed().values_list("sensitivity", flat=True))
    context = {
        "rows": _rows(found),
        "levels": tuple(
            (name, meaning, levels.count(Sensitivity[name.upper()].value))
            for name, meaning in WORDS["sensitivities"].items()
        ),
    }
    return render(request, "explorer/access/compartments.html", context)


@admin_page("GET", "POST", may_cache=True)
def new_compartment(request: HtmxHttpRequest) -> HttpResponse:
    """Add a compartment."""
    form = CompartmentForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        with form.errors_at("name"):
            made = create_compartment(**form.cleaned_data, actor=viewer_of(request))
            messages.success(request, f"{made.name} was added. Nobody can see it until you give a clearance.")
            return redirect("explorer:compartment", slug=made.slug)
    context = {"form": form}
    return render(request, "explorer/access/compartment_new.html", context, status=422 if form.errors else 200)


@admin_page("GET", "POST", may_cache=True)
def compartment(request: HtmxHttpRequest, slug: str) -> HttpResponse:
    """Show a compartment; a POST changes its name and description."""
    found = get_object_or_404(
        Compartment.objects.listed().prefetch_related("connections", "grants__user", "grants__group"), slug=slug
    )
    form = CompartmentForm(request.POST or None, initial={"name": found.name, "description": found.description})
    if request.method == "POST" and form.is_valid():
        change_compartment(found, **form.cleaned_data, actor=viewer_of(request))
        messages.success(request, "The compartment was saved.")
        return redirect("explorer:compartment", slug=slug)
    row = _rows([found], with_people=True)[0]
    levels = clearances_of(found.grants.all())
    context = {
        "compartment": found,
        "row": row,
        "cells": [cell(it, found, level_name(levels[it.kind, it.id, found.pk])) for it, _ in row["holders"]],
        "origin": "compartment",
        "change": last_change(request),
        "form": form,
    }
    return render(request, "explorer/access/compartment.html", context, status=form.status)


@admin_page("GET", "POST", may_cache=True)
def delete(request: HtmxHttpRequest, slug: str) -> HttpResponse:
    """Show the consequences of deleting a compartment; a POST deletes it."""
    found = get_object_or_404(Compartment.objects.listed(), slug=slug)
    if request.method == "POST":
        try:
            deleted = delete_compartment(found, actor=viewer_of(request))
        except CoreCubeError as error:
            messages.error(request, str(error))
            return redirect("explorer:compartment", slug=slug)
        revoked = f" Revoked API keys limited to it: {deleted.keys}." if deleted.keys else ""
        messages.success(request, f"{found.name} was deleted.{revoked}")
        return redirect("explorer:compartments")
    context = {"compartment": found, "consequences": consequences(found)}
    return render(request, "explorer/access/compartment_delete.html", context)


def _rows(found: Iterable[Compartment], *, with_people: bool = False) -> list[dict[str, Any]]:
    shown = list(found)
    counted = Document.objects.filter(connection__compartment__in=shown).values_list("connection_id")
    documents = dict(counted.annotate(Count("pk")))
    reach = reach_of(User.objects.all()) if with_people else {}
    return [_compartment_row(it, documents, reach) for it in shown]
