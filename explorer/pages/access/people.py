"""Users and groups, for admins: lists, one user or group with their access, and changes."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any, Final

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import Group
from django.db.models import Count, QuerySet
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.debug import sensitive_post_parameters

from corecube import audit, people
from corecube.access import Principal, scope_for, user_named
from corecube.database import atomic_change
from corecube.errors import CoreCubeError
from corecube.grants import Holder, give_clearances
from corecube.http import HtmxHttpRequest
from corecube.models import Compartment, OidcGroup, User
from corecube.oidc.accounts import map_value, unmap_value
from corecube.oidc.provider import is_configured
from corecube.reach import reach_of
from explorer.components.scope import scope_chips, scope_rows
from explorer.components.user_menu import MAX_SUGGESTED, users_named
from explorer.pages.access.clearances import clearances_of, columns, last_change, row
from explorer.pages.access.confirm import confirmation, effect_of, is_confirmed
from explorer.pages.access.forms import ClaimForm, GroupForm, GroupsForm, NamesForm, NewUserForm
from explorer.pages.access.keys import key_rows
from explorer.viewer import admin_action, admin_page, errors_shown, viewer_of
from explorer.wording import reach_summary

MAX_USERS: Final = 200
_MAX_MEMBERS = 500


@admin_page("GET", may_cache=True)
def users(request: HtmxHttpRequest) -> HttpResponse:
    """List the users, or those whose name contains the search text."""
    find = request.GET.get("find", "").replace("\0", "").strip()
    found = users_named(find).order_by("-is_active", "username")
    context = {"find": find, **_people_list(found, MAX_USERS)}
    return render(request, "explorer/access/users.html", context)


def _people_list(found: QuerySet[User], limit: int) -> dict[str, Any]:
    """Return the first people with the number of connections that they can see, and how many are not listed."""
    shown = list(found.prefetch_related("groups")[:limit])
    reach = reach_of(User.objects.filter(pk__in=[it.pk for it in shown]))
    count = found.count()
    rows = [(it, len(reach.get(it.username, ()))) for it in shown]
    return {"rows": rows, "count": count, "unlisted": count - len(shown)}


def _clearances(holder: Holder) -> dict[str, Any]:
    compartments = list(Compartment.objects.listed().prefetch_related("connections"))
    return {
        "columns": list(columns(compartments)),
        "grants": row(holder, compartments, clearances_of(holder.grants)),
        "origin": "holder",
    }


@admin_page("GET")
def names(request: HtmxHttpRequest) -> HttpResponse:
    """Suggest active users for the text of a field, which is the only parameter."""
    found = users_named(request.GET.get(next(iter(request.GET), ""), "")).filter(is_active=True)[:MAX_SUGGESTED]
    return render(request, "explorer/components/_user_names.html", {"names": found})


@sensitive_post_parameters("password")
@admin_page("GET", "POST")
def new_user(request: HtmxHttpRequest) -> HttpResponse:
    """Add a user. Without a password, the response shows once a link with which the user sets one."""
    form = NewUserForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        with form.errors_at("username"):
            made = _create_user(form, viewer_of(request))
            if not made.has_usable_password():
                return _link_page(request, made, is_new=True)
            messages.success(request, f"{made.username} was added.")
            return redirect("explorer:user", user_id=made.pk)
    context = {"form": form}
    return render(request, "explorer/access/user_new.html", context, status=422 if form.errors else 200)


def _create_user(form: NewUserForm, actor: User) -> User:
    """Add a user with the chosen groups and clearances."""
    values = form.cleaned_data
    names = {name: values[name] for name in ("username", "first_name", "last_name")}
    with atomic_change():
        made = people.create_user(**names, password=values["password"] or None, actor=actor)
        people.set_groups(made, groups=list(values["groups"]), actor=actor)
        give_clearances(
            holders=[Holder.of(made)], compartments=list(values["compartments"]), clearance=form.level, actor=actor
        )
    return made


@admin_page("GET", "POST")
def user(request: HtmxHttpRequest, user_id: int) -> HttpResponse:
    """Show a user: groups, grants, keys and, audited, their access by rule. A POST changes their name."""
    found = get_object_or_404(User, pk=user_id)
    form = NamesForm(request.POST or None, initial=_names(found))
    if request.method == "POST" and form.is_valid():
        people.rename_user(found, **form.cleaned_data, actor=viewer_of(request))
        messages.success(request, "The name was saved.")
        return redirect("explorer:user", user_id=user_id)
    context = {**_user_context(found), "form": form, "change": last_change(request)}
    if request.method == "GET" and found != viewer_of(request):
        audit.record("access.checked", actor=viewer_of(request), subject=found.username)
    return render(request, "explorer/access/user.html", context, status=form.status)


@admin_action
def change_groups(request: HtmxHttpRequest, user_id: int) -> HttpResponse:
    """Set the groups of a user."""
    found = get_object_or_404(User, pk=user_id)
    form = GroupsForm(request.POST, initial={"groups": found.groups.order_by("pk")})
    if form.is_stale:
        context = {**_user_context(found), "form": NamesForm(initial=_names(found)), "groups": form}
        return render(request, "explorer/access/user.html", context, status=form.status)
    if form.is_valid():
        save = partial(people.set_groups, found, groups=list(form.cleaned_data["groups"]), actor=viewer_of(request))
        effect = effect_of(User.objects.filter(pk=found.pk), save)
        if not is_confirmed(request, effect):
            title, back = f"Change the groups of {found.username}?", reverse("explorer:user", args=[user_id])
            return confirmation(request, effect, title=title, back=back)
        change = save()
        messages.success(request, f"The groups were saved. {reach_summary(change)}")
    else:
        messages.error(request, "One of the groups no longer exists. Nothing was changed.")
    return redirect("explorer:user", user_id=user_id)


@admin_action
def change_active(request: HtmxHttpRequest, user_id: int) -> HttpResponse:
    """Activate or deactivate a user."""
    is_active = request.POST.get("active") == "yes"
    result = "can sign in again" if is_active else "was signed out, and their API keys no longer work"
    return _changed(request, user_id, result, lambda it, by: people.set_active(it, is_active=is_active, actor=by))


@admin_action
def change_admin(request: HtmxHttpRequest, user_id: int) -> HttpResponse:
    """Give or remove admin rights."""
    is_admin = request.POST.get("admin") == "yes"
    result = "is now an admin" if is_admin else "is no longer an admin"
    return _changed(request, user_id, result, lambda it, by: people.set_admin(it, is_admin=is_admin, actor=by))


@admin_page("POST")
def new_link(request: HtmxHttpRequest, user_id: int) -> HttpResponse:
    """Show once a link with which a user sets a password."""
    return _link_page(request, get_object_or_404(User, pk=user_id), is_new=False)


def _changed(request: HtmxHttpRequest, user_id: int, result: str, do: Callable[[User, User], None]) -> HttpResponse:
    found = get_object_or_404(User, pk=user_id)
    with errors_shown(request):
        do(found, viewer_of(request))
        messages.success(request, f"{found.username} {result}.")
    return redirect("explorer:user", user_id=user_id)


def _link_page(request: HtmxHttpRequest, found: User, *, is_new: bool) -> HttpResponse:
    try:
        path = people.password_link(found, actor=viewer_of(request))
    except CoreCubeError as error:
        messages.error(request, str(error))
        return redirect("explorer:user", user_id=found.pk)
    context = {
        "person": found,
        "is_new": is_new,
        "link": request.build_absolute_uri(path),
        "ends": timezone.now() + timedelta(seconds=settings.PASSWORD_RESET_TIMEOUT),
    }
    return render(request, "explorer/access/user_link.html", context)


def _names(found: User) -> dict[str, str]:
    return {"first_name": found.first_name, "last_name": found.last_name}


def _user_context(found: User) -> dict[str, Any]:
    scope = scope_for(Principal(found), reveal_excluded=True)
    return {
        "person": found,
        "joined": found.date_joined,
        "groups": GroupsForm(initial={"groups": found.groups.order_by("pk")}),
        **_clearances(Holder.of(found)),
        "scope_rows": scope_rows(scope_chips(scope, ())),
        "keys": key_rows(found.api_keys.all(), timezone.now()),
    }


@admin_page("GET", may_cache=True)
def groups(request: HtmxHttpRequest) -> HttpResponse:
    """List the groups with their members and clearances."""
    found = Group.objects.annotate(members=Count("user", distinct=True)).order_by("name")
    context = {"groups": found.prefetch_related("grants__compartment"), "form": GroupForm()}
    return render(request, "explorer/access/groups.html", context)


@admin_page("GET", "POST", may_cache=True)
def new_group(request: HtmxHttpRequest) -> HttpResponse:
    """Add a group."""
    form = GroupForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        with form.errors_at("name"):
            made = people.create_group(**form.cleaned_data, actor=viewer_of(request))
            messages.success(request, f"{made.name} was added.")
            return redirect("explorer:group", group_id=made.pk)
    context = {"form": form}
    return render(request, "explorer/access/group_new.html", context, status=422 if form.errors else 200)


@admin_page("GET", "POST")
def group(request: HtmxHttpRequest, group_id: int) -> HttpResponse:
    """Show a group: its members and clearances. A POST renames it."""
    found = get_object_or_404(Group, pk=group_id)
    name = found.name
    form = GroupForm(request.POST or None, initial={"name": name})
    if request.method == "POST" and form.is_valid():
        with form.errors_at("name"):
            people.rename_group(found, **form.cleaned_data, actor=viewer_of(request))
            messages.success(request, "The name was saved.")
            return redirect("explorer:group", group_id=group_id)
    context = {**_group_context(found), "name": name, "form": form, "change": last_change(request)}
    return render(request, "explorer/access/group.html", context, status=form.status)


@admin_action
def change_member(request: HtmxHttpRequest, group_id: int) -> HttpResponse:
    """Add a user to a group, or remove them."""
    found = get_object_or_404(Group, pk=group_id)
    is_member = request.POST.get("member") == "yes"
    name = request.POST.get("username", "").replace("\0", "").strip()
    with errors_shown(request):
        person = user_named(name) if is_member else get_object_or_404(User, username=name)
        save = partial(people.set_membership, found, person, is_member=is_member, actor=viewer_of(request))
        effect = effect_of(User.objects.filter(pk=person.pk), save)
        if not is_confirmed(request, effect):
            title = (
                f"{'Add' if is_member else 'Remove'} {person.username} {'to' if is_member else 'from'} {found.name}?"
            )
            return confirmation(request, effect, title=title, back=reverse("explorer:group", args=[group_id]))
        change = save()
        verb = "added" if is_member else "removed"
        messages.success(request, f"{person.username} was {verb}. {reach_summary(change)}")
    return redirect("explorer:group", group_id=group_id)


@admin_page("GET", "POST", may_cache=True)
def delete(request: HtmxHttpRequest, group_id: int) -> HttpResponse:
    """Show the consequences of deleting a group; a POST deletes it."""
    found = get_object_or_404(Group, pk=group_id)
    if request.method == "POST":
        deleted = people.delete_group(found, actor=viewer_of(request))
        messages.success(request, f"{found.name} was deleted. {reach_summary(deleted.reach)}")
        return redirect("explorer:groups")
    consequences = people.deletion_of(found)
    effect = reach_summary(consequences.reach)
    context = {"group": found, "consequences": consequences, "effect": effect}
    return render(request, "explorer/access/group_delete.html", context)


@admin_action
def add_claim(request: HtmxHttpRequest, group_id: int) -> HttpResponse:
    """Map a value of the groups claim to a group, from the next sign-in."""
    group = get_object_or_404(Group, pk=group_id)
    form = ClaimForm(request.POST)
    if not form.is_valid():
        messages.error(request, "Enter a value of the groups claim, at most 500 characters.")
        return redirect("explorer:group", group_id=group_id)
    with errors_shown(request):
        mapping = map_value(group, form.cleaned_data["value"], actor=viewer_of(request))
        messages.success(request, f"Users who sign in with {mapping.value} join {group.name}.")
    return redirect("explorer:group", group_id=group_id)


@admin_action
def remove_claim(request: HtmxHttpRequest, group_id: int, claim_id: int) -> HttpResponse:
    """Remove the mapping of a claim value to a group."""
    mapping = get_object_or_404(OidcGroup.objects.select_related("group"), pk=claim_id, group=group_id)
    remove = partial(unmap_value, mapping, actor=viewer_of(request))
    effect = effect_of(User.objects.filter(groups=group_id), remove)
    if not is_confirmed(request, effect):
        title, back = f"Remove {mapping.value}?", reverse("explorer:group", args=[group_id])
        return confirmation(request, effect, title=title, back=back)
    change = remove()
    messages.success(request, f"{mapping.value} was removed. {reach_summary(change)}")
    return redirect("explorer:group", group_id=group_id)


def _group_context(found: Group) -> dict[str, object]:
    return {
        "group": found,
        **_people_list(User.objects.filter(groups=found).order_by("username"), _MAX_MEMBERS),
        **_clearances(Holder.of(found)),
        "claims": found.oidc_values.all(),
        "offers_claims": is_configured() or found.oidc_values.exists(),
        "by_sign_in": set(found.oidc_memberships.values_list("user", flat=True)),
    }
