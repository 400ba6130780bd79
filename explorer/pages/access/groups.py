"""Groups, for admins: members, clearances, and values of the sign-in provider's groups claim."""

from django.contrib import messages
from django.contrib.auth.models import Group
from django.db.models import Count
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from corecube import groups as group_services
from corecube.access import user_named
from corecube.errors import CoreCubeError
from corecube.grants import Holder
from corecube.http import HtmxHttpRequest
from corecube.models import Compartment, Grant, OidcGroup, User
from corecube.oidc.accounts import map_value, unmap_value
from corecube.oidc.provider import is_configured
from corecube.reach import reach_of
from explorer.pages.access.clearances import clearances_of, columns, last_change, row
from explorer.pages.access.forms import ClaimForm, GroupForm
from explorer.viewer import admin_page, admins_only, viewer_of
from explorer.wording import reach_summary

_MAX_MEMBERS = 500


@require_GET
@admins_only
def groups(request: HtmxHttpRequest) -> HttpResponse:
    """List the groups with their members and clearances."""
    found = Group.objects.annotate(members=Count("user", distinct=True)).order_by("name")
    context = {"section": "groups", "groups": found.prefetch_related("grants__compartment"), "form": GroupForm()}
    return render(request, "explorer/access/groups.html", context)


@require_http_methods(["GET", "POST"])
@admins_only
def new_group(request: HtmxHttpRequest) -> HttpResponse:
    """Add a group."""
    form = GroupForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            made = group_services.create_group(**form.cleaned_data, actor=viewer_of(request))
        except CoreCubeError as error:
            form.add_error("name", str(error))
        else:
            messages.success(request, f"{made.name} was added.")
            return redirect("explorer:group", group_id=made.pk)
    context = {"section": "groups", "form": form}
    return render(request, "explorer/access/group_new.html", context, status=422 if form.errors else 200)


@admin_page("GET", "POST")
def group(request: HtmxHttpRequest, group_id: int) -> HttpResponse:
    """Show a group: its members and clearances. A POST renames it."""
    found = get_object_or_404(Group, pk=group_id)
    name = found.name
    form = GroupForm(request.POST or None, initial={"name": name})
    if request.method == "POST" and form.is_valid():
        try:
            group_services.rename_group(found, **form.cleaned_data, actor=viewer_of(request))
        except CoreCubeError as error:
            form.add_error("name", str(error))
        else:
            messages.success(request, "The name was saved.")
            return redirect("explorer:group", group_id=group_id)
    context = {**_group_context(found), "name": name, "form": form, "change": last_change(request)}
    return render(request, "explorer/access/group.html", context, status=form.status)


@require_POST
@admins_only
def change_member(request: HtmxHttpRequest, group_id: int) -> HttpResponse:
    """Add a user to a group, or remove them."""
    found = get_object_or_404(Group, pk=group_id)
    is_member = request.POST.get("member") == "yes"
    name = request.POST.get("username", "").replace("\0", "").strip()
    try:
        person = user_named(name) if is_member else get_object_or_404(User, username=name)
        change = group_services.set_membership(found, person, is_member=is_member, actor=viewer_of(request))
        verb = "added" if is_member else "removed"
        messages.success(request, f"{person.username} was {verb}. {reach_summary(change)}")
    except CoreCubeError as error:
        messages.error(request, str(error))
    return redirect("explorer:group", group_id=group_id)


@require_http_methods(["GET", "POST"])
@admins_only
def delete(request: HtmxHttpRequest, group_id: int) -> HttpResponse:
    """Show the consequences of deleting a group; a POST deletes it."""
    found = get_object_or_404(Group, pk=group_id)
    if request.method == "POST":
        deleted = group_services.delete_group(found, actor=viewer_of(request))
        messages.success(request, f"{found.name} was deleted. {reach_summary(deleted.reach)}")
        return redirect("explorer:groups")
    consequences = group_services.deletion_of(found)
    effect = reach_summary(consequences.reach)
    context = {"section": "groups", "group": found, "consequences": consequences, "effect": effect}
    return render(request, "explorer/access/group_delete.html", context)


@require_POST
@admins_only
def add_claim(request: HtmxHttpRequest, group_id: int) -> HttpResponse:
    """Map a value of the groups claim to a group, from the next sign-in."""
    group = get_object_or_404(Group, pk=group_id)
    form = ClaimForm(request.POST)
    if not form.is_valid():
        messages.error(request, "Enter a value of the groups claim, at most 500 characters.")
        return redirect("explorer:group", group_id=group_id)
    try:
        mapping = map_value(group, form.cleaned_data["value"], actor=viewer_of(request))
        messages.success(request, f"Users who sign in with {mapping.value} join {group.name}.")
    except CoreCubeError as error:
        messages.error(request, str(error))
    return redirect("explorer:group", group_id=group_id)


@require_POST
@admins_only
def remove_claim(request: HtmxHttpRequest, group_id: int, claim_id: int) -> HttpResponse:
    """Remove the mapping of a claim value to a group."""
    mapping = get_object_or_404(OidcGroup.objects.select_related("group"), pk=claim_id, group=group_id)
    change = unmap_value(mapping, actor=viewer_of(request))
    messages.success(request, f"{mapping.value} was removed. {reach_summary(change)}")
    return redirect("explorer:group", group_id=group_id)


def _group_context(found: Group) -> dict[str, object]:
    compartments = list(Compartment.objects.prefetch_related("connections"))
    members = User.objects.filter(groups=found).order_by("username")
    shown = list(members.prefetch_related("groups")[:_MAX_MEMBERS])
    reach = reach_of(User.objects.filter(pk__in=[it.pk for it in shown]))
    count = members.count()
    others = User.objects.filter(is_active=True).exclude(groups=found).order_by("username")
    return {
        "section": "groups",
        "group": found,
        "members": [(it, len(reach.get(it.username, ()))) for it in shown],
        "count": count,
        "unlisted": count - len(shown),
        "others": others.values_list("username", flat=True)[:_MAX_MEMBERS],
        "columns": columns(compartments),
        "grants": row(Holder.of(found), compartments, clearances_of(Grant.objects.filter(group=found))),
        "origin": "holder",
        "claims": found.oidc_values.all(),
        "offers_claims": is_configured() or found.oidc_values.exists(),
        "by_sign_in": set(found.oidc_memberships.values_list("user", flat=True)),
    }
