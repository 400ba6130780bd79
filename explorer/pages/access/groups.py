"""Groups, for admins: who is in each, and what it may see."""

from django.contrib import messages
from django.contrib.auth.models import Group
from django.db.models import Count
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from corecube import groups as group_services
from corecube.access import user_named
from corecube.errors import CoreCubeError
from corecube.grants import Holder
from corecube.http import HtmxHttpRequest
from corecube.models import Compartment, Grant, User
from corecube.oidc.provider import is_configured
from corecube.reach import reach_of
from explorer.pages.access.clearance_panels import columns, held, row
from explorer.pages.access.clearances import last_change
from explorer.pages.access.forms import GroupForm
from explorer.pages.access.people_panels import user_row
from explorer.pages.access.reach import reach_words
from explorer.viewer import admins_only, viewer_of

#: Members that a group's page lists, and names that it suggests.
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


@require_http_methods(["GET", "POST"])
@admins_only
@never_cache
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
    """Put a user into a group, or take them out."""
    found = get_object_or_404(Group, pk=group_id)
    is_member = request.POST.get("member") == "yes"
    name = request.POST.get("username", "").replace("\0", "").strip()
    try:
        person = user_named(name) if is_member else get_object_or_404(User, username=name)
        change = group_services.set_membership(found, person, is_member=is_member, actor=viewer_of(request))
        said = "was added" if is_member else "was removed"
        messages.success(request, f"{person.username} {said}. {reach_words(change)}")
    except CoreCubeError as error:
        messages.error(request, str(error))
    return redirect("explorer:group", group_id=group_id)


@require_http_methods(["GET", "POST"])
@admins_only
def delete(request: HtmxHttpRequest, group_id: int) -> HttpResponse:
    """Show what deleting a group does; a POST deletes it."""
    found = get_object_or_404(Group, pk=group_id)
    if request.method == "POST":
        gone = group_services.delete_group(found, actor=viewer_of(request))
        messages.success(request, f"{found.name} was deleted. {reach_words(gone.reach)}")
        return redirect("explorer:groups")
    gone = group_services.deletion_of(found)
    context = {"section": "groups", "group": found, "consequences": gone, "effect": reach_words(gone.reach)}
    return render(request, "explorer/access/group_delete.html", context)


def _group_context(found: Group) -> dict[str, object]:
    compartments = list(Compartment.objects.prefetch_related("connections"))
    members = User.objects.filter(groups=found).order_by("username")
    shown = list(members.prefetch_related("groups")[:_MAX_MEMBERS])
    reach = reach_of(User.objects.filter(pk__in=[it.pk for it in shown]))
    now = timezone.now()
    count = members.count()
    others = User.objects.filter(is_active=True).exclude(groups=found).order_by("username")
    return {
        "section": "groups",
        "group": found,
        "members": [user_row(it, reach, now) for it in shown],
        "count": count,
        "unlisted": count - len(shown),
        "others": others.values_list("username", flat=True)[:_MAX_MEMBERS],
        "columns": columns(compartments),
        "grants": row(Holder.of(found), compartments, held(Grant.objects.filter(group=found))),
        "origin": "holder",
        "claims": found.oidc_values.all(),
        "offers_claims": is_configured() or found.oidc_values.exists(),
        "by_sign_in": set(found.oidc_memberships.values_list("user", flat=True)),
    }
