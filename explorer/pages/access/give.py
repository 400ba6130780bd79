"""Give groups and users access to compartments, in one form with a preview of who gains what."""

from collections.abc import Iterable

from django.contrib import messages
from django.db.models import Q
from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse

from corecube.grants import Holder, give_clearances
from corecube.http import HtmxHttpRequest
from corecube.models import Connection, User
from corecube.sanitise import storable
from explorer.components.user_menu import user_boxes
from explorer.pages.access.confirm import AccessEffect, effect_of, is_confirmed
from explorer.pages.access.forms import AccessForm, GiveAccessForm
from explorer.viewer import admin_action, admin_page, viewer_of, whole_number
from explorer.wording import reach_summary


@admin_page("GET", "POST", may_cache=True)
def give_access(request: HtmxHttpRequest) -> HttpResponse:
    """Give a clearance to groups and users; a POST saves it if the effect shown is the one that it has."""
    form = GiveAccessForm(request.POST or None, initial=_chosen(request))
    boxes = user_boxes(_numbers(form["users"].value()))
    context: dict[str, object] = {"form": form, "section": "clearances", "boxes": boxes}
    if request.method == "POST" and form.is_valid():
        effect = _effect(form, viewer_of(request))
        if is_confirmed(request, effect):
            return _give(request, form)
        context |= {"effect": effect, "is_unconfirmed": True}
    return render(request, "explorer/access/give.html", context, status=422 if form.errors else 200)


@admin_page("GET")
def find_users(request: HtmxHttpRequest) -> HttpResponse:
    """Show the checked users, and those whose name contains the text."""
    boxes = user_boxes(_numbers(request.GET.getlist("users")), request.GET.get("named", ""))
    return render(request, "explorer/access/_user_boxes.html", {"boxes": boxes})


@admin_action
def preview(request: HtmxHttpRequest) -> HttpResponse:
    """Show who would gain access."""
    form = GiveAccessForm(request.POST)
    context: dict[str, object] = {"effect": None, "is_live": True}
    if form.is_valid():
        context |= {"effect": _effect(form, viewer_of(request)), "too_low": form.too_low()}
    return render(request, "explorer/access/_effect.html", context)


@admin_action
def preview_user(request: HtmxHttpRequest) -> HttpResponse:
    """Show which connections a new user would see."""
    form = AccessForm(request.POST)
    context = {"visible": form.visible(), "too_low": form.too_low()} if form.is_valid() else {}
    return render(request, "explorer/access/_visible.html", context)


def _chosen(request: HtmxHttpRequest) -> dict[str, object]:
    """Return what links to the page preselect: a group, a user, a compartment, or what gives access to a connection."""
    names = {"groups": "group", "users": "user", "compartments": "compartment"}
    chosen: dict[str, object] = {field: _numbers(request.GET.getlist(name)) for field, name in names.items()}
    connection = Connection.objects.listed().filter(slug=storable(request.GET.get("connection", ""))).first()
    if connection:
        chosen |= {"compartments": [connection.compartment_id], "clearance": connection.sensitivity}
    return chosen


def _numbers(values: Iterable[str | int] | None) -> list[int]:
    return [whole_number(str(it), 0) for it in values or ()]


def _effect(form: GiveAccessForm, actor: User) -> AccessEffect:
    values = form.cleaned_data
    people = User.objects.filter(Q(groups__in=values["groups"]) | Q(pk__in=values["users"])).distinct()
    return effect_of(people, lambda: give_clearances(**form.gift, actor=actor))


def _give(request: HtmxHttpRequest, form: GiveAccessForm) -> HttpResponse:
    given = give_clearances(**form.gift, actor=viewer_of(request))
    messages.success(request, f"Access was given. {reach_summary(given)}")
    return HttpResponseRedirect(_page_of(form.gift["holders"]))


def _page_of(holders: list[Holder]) -> str:
    """Return the page of the only holder, or the clearances of all."""
    if len(holders) == 1:
        return reverse(f"explorer:{holders[0].kind}", args=[holders[0].id])
    return reverse("explorer:clearances")
