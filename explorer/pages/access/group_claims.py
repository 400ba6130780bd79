"""Which values of the sign-in provider's groups claim open a group, for admins."""

from django.contrib import messages
from django.contrib.auth.models import Group
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from corecube.errors import CoreCubeError
from corecube.http import HtmxHttpRequest
from corecube.models import OidcGroup
from corecube.oidc.groups import map_value, unmap_value
from explorer.pages.access.forms import ClaimForm
from explorer.pages.access.reach import reach_words
from explorer.viewer import admins_only, viewer_of


@require_POST
@admins_only
def add_claim(request: HtmxHttpRequest, group_id: int) -> HttpResponse:
    """Let a value open a group from the next sign-in on."""
    group = get_object_or_404(Group, pk=group_id)
    form = ClaimForm(request.POST)
    if not form.is_valid():
        messages.error(request, "A value of the groups claim is needed, of 500 characters at the most.")
        return redirect("explorer:group", group_id=group_id)
    try:
        made = map_value(group, form.cleaned_data["value"], actor=viewer_of(request))
        messages.success(request, f"Whoever signs in with {made.value} is put into {group.name}.")
    except CoreCubeError as error:
        messages.error(request, str(error))
    return redirect("explorer:group", group_id=group_id)


@require_POST
@admins_only
def remove_claim(request: HtmxHttpRequest, group_id: int, claim_id: int) -> HttpResponse:
    """Let a value open a group no longer."""
    mapping = get_object_or_404(OidcGroup.objects.select_related("group"), pk=claim_id, group=group_id)
    change = unmap_value(mapping, actor=viewer_of(request))
    messages.success(request, f"{mapping.value} was removed. {reach_words(change)}")
    return redirect("explorer:group", group_id=group_id)
