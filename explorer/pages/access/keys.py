"""API keys and connected OAuth clients: users see their own, admins all of them."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import UUID

from django.contrib import messages
from django.db.models import F, Q, QuerySet
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from oauth2_provider.models import Application

from corecube import keys as services
from corecube.access import Principal, scope_for
from corecube.http import HtmxHttpRequest
from corecube.models import ApiKey, User
from corecube.oauth.clients import connected_clients, disconnect
from explorer import wording
from explorer.components.user_menu import user_menu
from explorer.pages.access.clearances import level_of
from explorer.pages.access.forms import KeyForm
from explorer.viewer import admin_page, user_page, viewer_of
from explorer.wording import WORDS

_MAX_KEYS: Final = 500
_MAX_ENDED: Final = 100


@dataclass(frozen=True, slots=True)
class Visible:
    """Ids of the compartments and connections whose names the viewer may see."""

    compartments: Collection[int]
    connections: Collection[int]


def key_row(key: ApiKey, now: datetime, visible: Visible | None) -> dict[str, Any]:
    """Return a key's row; its user, compartments and connections must be read already.

    What is not `visible` to the viewer is not named; None names everything.
    """
    state = services.key_state(key, now)
    access = "; ".join(_limits(key, visible)) or "everything its user can see"
    return {
        "key": key,
        "state": state.value,
        "tone": WORDS["key_tones"][state],
        "limits": f"{access}; user forwarding" if key.may_forward_users else access,
        "rate": f"{key.requests_per_minute:,} per minute" if key.requests_per_minute else "unlimited",
        "created": wording.ago(key.created_at, now),
        "used": wording.ago(key.last_used_at, now) if key.last_used_at else "never",
        "expires": f"{key.expires_at:%Y-%m-%d}" if key.expires_at else "never",
        "is_open": state in {services.KeyState.ACTIVE, services.KeyState.OWNER_INACTIVE},
    }


def _limits(key: ApiKey, visible: Visible | None) -> Iterator[str]:
    compartments = [(it.pk, it.name) for it in key.compartments.all()]
    if compartments:
        yield "only " + _names(compartments, visible.compartments if visible else None, "other compartments")
    if key.max_sensitivity is not None:
        yield f"up to {level_of(key.max_sensitivity)}"
    if key.presets:
        yield "presets " + ", ".join(map(str, key.presets))
    pushes = [(it.pk, it.name) for it in key.push_connections.all()]
    if pushes:
        yield "can push to " + _names(pushes, visible.connections if visible else None, "other connections")


def _names(found: Iterable[tuple[int, str]], visible: Collection[int] | None, others: str) -> str:
    """Return the visible names, and one term for all others."""
    items = list(found)
    names = [name for pk, name in items if visible is None or pk in visible]
    return ", ".join(names if len(names) == len(items) else [*names, others])


@admin_page("GET")
def keys(request: HtmxHttpRequest) -> HttpResponse:
    """List all keys."""
    clients = _client_rows(User.objects.all())
    context = {"is_all": True, "is_admin": True, "clients": clients, **_lists(ApiKey.objects.all(), None)}
    return render(request, "explorer/access/keys.html", context)


@user_page("GET")
def own_keys(request: HtmxHttpRequest) -> HttpResponse:
    """List the viewer's own keys."""
    viewer = viewer_of(request)
    lists = _lists(viewer.api_keys.all(), _visible(viewer))
    clients = _client_rows(User.objects.filter(pk=viewer.pk))
    context = {"section": "own_keys", "is_all": False, "is_admin": viewer.is_admin, "clients": clients, **lists}
    return render(request, "explorer/access/keys.html", context)


@user_page("GET", "POST")
def new_key(request: HtmxHttpRequest) -> HttpResponse:
    """Issue a key. Only the response to the POST contains the secret."""
    viewer = viewer_of(request)
    # Only an admin can create a key for somebody else.
    name = request.GET.get("user", "").replace("\0", "")
    form = KeyForm(
        request.POST or None,
        actor=viewer,
        owner=User.objects.filter(username=name).first() if viewer.is_admin and name else None,
    )
    if request.method == "POST" and form.is_valid():
        key, secret = services.issue_key(user=form.owner, terms=form.terms, actor=viewer)
        forwarding_secret = services.allow_forwarding(key, actor=viewer) if form.may_forward_users else ""
        row = key_row(key, timezone.now(), _visible(viewer))
        section = _section(key, viewer)
        issued = {"section": section, "row": row, "secret": secret, "forwarding_secret": forwarding_secret}
        return render(request, "explorer/access/key_issued.html", issued)
    context = {"section": "own_keys", "form": form, "is_admin": viewer.is_admin, "user_menu": user_menu(viewer)}
    return render(request, "explorer/access/key_new.html", context, status=422 if form.errors else 200)


@user_page("GET", "POST", may_cache=True)
def revoke(request: HtmxHttpRequest, key_id: UUID) -> HttpResponse:
    """Confirm and, by a POST, revoke a key. For users who are not admins, keys of others are a 404."""
    viewer = viewer_of(request)
    keys = ApiKey.objects.all() if viewer.is_admin else viewer.api_keys.all()
    key = get_object_or_404(keys.select_related("user"), pk=key_id)
    back = "explorer:keys" if key.user != viewer else "explorer:own_keys"
    if request.method == "POST":
        services.revoke_key(key, actor=viewer)
        messages.success(request, f"{key.name} was revoked. Applications that use it no longer have access.")
        return redirect(back)
    row = key_row(key, timezone.now(), _visible(viewer))
    context = {"section": _section(key, viewer), "row": row, "back": back}
    return render(request, "explorer/access/key_revoke.html", context)


@user_page("POST")
def disconnect_client(request: HtmxHttpRequest, client_id: int, user_id: int) -> HttpResponse:
    """Revoke the tokens of an OAuth client for a user. For users who are not admins, those of others are a 404."""
    viewer = viewer_of(request)
    people = User.objects.all() if viewer.is_admin else User.objects.filter(pk=viewer.pk)
    user, client = get_object_or_404(people, pk=user_id), get_object_or_404(Application, pk=client_id)
    disconnect(client, user, actor=viewer)
    messages.success(request, f"{client} was disconnected and no longer has access.")
    return redirect("explorer:keys" if user != viewer else "explorer:own_keys")


@admin_page("GET", "POST")
def forwarding(request: HtmxHttpRequest, key_id: UUID) -> HttpResponse:
    """Show whether a key acts for other users. A POST allows it and shows a new secret once, or stops it."""
    key = get_object_or_404(ApiKey.objects.select_related("user"), pk=key_id)
    if services.key_state(key, timezone.now()) in {services.KeyState.REVOKED, services.KeyState.EXPIRED}:
        raise Http404
    secret = ""
    if request.method == "POST" and request.POST.get("do") == "stop":
        services.stop_forwarding(key, actor=viewer_of(request))
        messages.success(request, f"{key.name} now acts only for its own user.")
        return redirect("explorer:key_forwarding", key_id=key_id)
    if request.method == "POST":
        secret = services.allow_forwarding(key, actor=viewer_of(request))
    row = key_row(key, timezone.now(), None)
    context = {"row": row, "is_allowed": key.may_forward_users, "secret": secret}
    return render(request, "explorer/access/key_forwarding.html", context)


def key_rows(found: QuerySet[ApiKey], now: datetime) -> list[dict[str, Any]]:
    """Return keys as rows for an admin."""
    return [key_row(key, now, None) for key in _with_related(found)[:_MAX_KEYS]]


def _client_rows(users: QuerySet[User]) -> list[dict[str, Any]]:
    now = timezone.now()
    return [
        {
            "client": it.client,
            "user": it.user,
            "hosts": ", ".join(sorted({urlsplit(uri).netloc for uri in it.client.redirect_uris.split()})),
            "used": wording.ago(it.used_at, now),
            "expires": f"{it.expires_at:%Y-%m-%d}",
        }
        for it in connected_clients(users)
    ]


def _lists(found: QuerySet[ApiKey], visible: Visible | None) -> dict[str, Any]:
    now = timezone.now()
    has_ended = Q(revoked_at__isnull=False) | Q(expires_at__lte=now)
    keys = _with_related(found)
    ended = keys.filter(has_ended).order_by(F("revoked_at").desc(nulls_last=True), "-expires_at")
    return {
        "rows": [key_row(key, now, visible) for key in keys.exclude(has_ended)[:_MAX_KEYS]],
        "ended": [key_row(key, now, visible) for key in ended[:_MAX_ENDED]],
    }


def _with_related(found: QuerySet[ApiKey]) -> QuerySet[ApiKey]:
    return found.select_related("user").prefetch_related("compartments", "push_connections")


def _visible(viewer: User) -> Visible | None:
    """Return what a viewer may see by name; None, for everything, for an admin."""
    if viewer.is_admin:
        return None
    ids = scope_for(Principal(viewer)).connection_ids
    return Visible({compartment.pk for compartment in services.visible_compartments(viewer)}, set(ids))


def _section(key: ApiKey, viewer: User) -> str:
    return "own_keys" if key.user_id == viewer.pk else "keys"
