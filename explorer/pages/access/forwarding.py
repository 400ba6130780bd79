"""API keys that act for the users of a front end, for admins."""

from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from corecube.forwarding import allow_forwarding, stop_forwarding
from corecube.http import HtmxHttpRequest
from corecube.keys import KeyState, key_state
from corecube.models import ApiKey
from explorer.pages.access.key_panels import key_row
from explorer.viewer import admins_only, viewer_of


@require_http_methods(["GET", "POST"])
@admins_only
@never_cache
def forwarding(request: HtmxHttpRequest, key_id: UUID) -> HttpResponse:
    """Show whether a key acts for users. A POST lets it, with a new secret that its answer alone shows, or stops it."""
    key = _key(key_id)
    secret = ""
    if request.method == "POST" and request.POST.get("do") == "stop":
        stop_forwarding(key, actor=viewer_of(request))
        messages.success(request, f"{key.name} acts for its own user only from now on.")
        return redirect("explorer:key_forwarding", key_id=key_id)
    if request.method == "POST":
        secret = allow_forwarding(key, actor=viewer_of(request))
    row = key_row(key, timezone.now(), None)
    context = {"section": "keys", "key": row, "is_allowed": key.may_forward_users, "secret": secret}
    return render(request, "explorer/access/key_forwarding.html", context)


def _key(key_id: UUID) -> ApiKey:
    """Return a key in force; raise Http404."""
    key = ApiKey.objects.filter(pk=key_id).select_related("user").first()
    if key is None or key_state(key, timezone.now()) in {KeyState.REVOKED, KeyState.EXPIRED}:
        raise Http404
    return key
