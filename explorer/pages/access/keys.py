"""API keys: everyone's own, and for admins all of them."""

from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.contrib import messages
from django.db.models import F, Q, QuerySet
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods

from corecube.access import Principal, scope_for
from corecube.forwarding import allow_forwarding
from corecube.http import HtmxHttpRequest
from corecube.keys import issue_key, revoke_key, seen_compartments
from corecube.models import ApiKey, User
from explorer.pages.access.forms import KeyForm
from explorer.pages.access.key_panels import KeyRow, Known, key_row
from explorer.viewer import admins_only, signed_in, viewer_of

#: Keys in force that a page lists, and keys that are over.
_MAX_KEYS: Final = 500
_MAX_ENDED: Final = 100


@require_GET
@admins_only
@never_cache
def keys(request: HtmxHttpRequest) -> HttpResponse:
    """List everyone's keys."""
    context = {"section": "keys", "is_all": True, "is_admin": True, **_lists(ApiKey.objects.all(), None)}
    return render(request, "explorer/access/keys.html", context)


@require_GET
@signed_in
@never_cache
def own_keys(request: HtmxHttpRequest) -> HttpResponse:
    """List the viewer's own keys."""
    viewer = viewer_of(request)
    lists = _lists(viewer.api_keys.all(), _known(viewer))
    context = {"section": "own_keys", "is_all": False, "is_admin": viewer.is_admin, **lists}
    return render(request, "explorer/access/keys.html", context)


@require_http_methods(["GET", "POST"])
@signed_in
@never_cache
def new_key(request: HtmxHttpRequest) -> HttpResponse:
    """Issue a key. Its secret stands in the answer to the POST, and nowhere else."""
    viewer = viewer_of(request)
    form = KeyForm(request.POST or None, actor=viewer, owner=_owner(request, viewer))
    if request.method == "POST" and form.is_valid():
        key, secret = issue_key(user=form.owner, terms=form.terms, actor=viewer)
        forwarding_secret = allow_forwarding(key, actor=viewer) if form.may_forward_users else ""
        row = key_row(key, timezone.now(), _known(viewer))
        section = _section(key, viewer)
        context = {"section": section, "key": row, "secret": secret, "forwarding_secret": forwarding_secret}
        return render(request, "explorer/access/key_issued.html", context)
    context = {"section": "own_keys", "form": form, "is_admin": viewer.is_admin}
    return render(request, "explorer/access/key_new.html", context, status=422 if form.errors else 200)


@require_http_methods(["GET", "POST"])
@signed_in
def revoke(request: HtmxHttpRequest, key_id: UUID) -> HttpResponse:
    """Ask whether to stop a key; a POST stops it. Someone else's does not exist, but for an admin."""
    viewer = viewer_of(request)
    own = Q() if viewer.is_admin else Q(user=viewer)
    key = ApiKey.objects.filter(own, pk=key_id).select_related("user").first()
    if key is None:
        raise Http404
    back = "explorer:keys" if key.user != viewer else "explorer:own_keys"
    if request.method == "POST":
        revoke_key(key, actor=viewer)
        messages.success(request, f"{key.name} was revoked. Programs that use it are refused from now on.")
        return redirect(back)
    row = key_row(key, timezone.now(), _known(viewer))
    context = {"section": _section(key, viewer), "key": row, "back": back}
    return render(request, "explorer/access/key_revoke.html", context)


def key_rows(found: QuerySet[ApiKey], now: datetime) -> list[KeyRow]:
    """Return keys as rows for an admin, who knows every compartment."""
    return [key_row(key, now, None) for key in _read(found)[:_MAX_KEYS]]


def _lists(found: QuerySet[ApiKey], known: Known | None) -> dict[str, Any]:
    """Return the keys in force, and apart from them those that are over."""
    now = timezone.now()
    is_over = Q(revoked_at__isnull=False) | Q(expires_at__lte=now)
    keys = _read(found)
    ended = keys.filter(is_over).order_by(F("revoked_at").desc(nulls_last=True), "-expires_at")
    return {
        "rows": [key_row(key, now, known) for key in keys.exclude(is_over)[:_MAX_KEYS]],
        "ended": [key_row(key, now, known) for key in ended[:_MAX_ENDED]],
    }


def _read(found: QuerySet[ApiKey]) -> QuerySet[ApiKey]:
    return found.select_related("user").prefetch_related("compartments", "push_connections")


def _known(viewer: User) -> Known | None:
    """Return what a viewer may know of; None for an admin, who may know of everything."""
    if viewer.is_admin:
        return None
    ids = scope_for(Principal(viewer)).connection_ids
    return Known({compartment.pk for compartment in seen_compartments(viewer)}, set(ids))


def _owner(request: HtmxHttpRequest, viewer: User) -> User | None:
    """Return whom an admin came to make a key for; None for anyone else."""
    name = request.GET.get("user", "").replace("\0", "")
    return User.objects.filter(username=name).first() if viewer.is_admin and name else None


def _section(key: ApiKey, viewer: User) -> str:
    return "own_keys" if key.user_id == viewer.pk else "keys"
