"""GET, POST and DELETE /api/v1/keys."""

from datetime import UTC
from typing import Annotated, Any, TypeVar
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Query, Router, Status

from corecube.access import Principal, user_named
from corecube.api import principal_of
from corecube.errors import InvalidRequestError, NotFoundError, NotPermittedError
from corecube.keys import KeyTerms, issue_key, key_state, revoke_key, seen_compartments
from corecube.models import ApiKey, Compartment, Connection, User
from corecube.sanitise import storable
from corecube.scope import Sensitivity
from retrieval.api import schemas
from retrieval.api.key_schemas import IssuedKeyOut, KeyIn, KeyOut, KeysOut
from retrieval.presets.catalog import PRESETS

router = Router(tags=["keys"])

_T = TypeVar("_T")


@router.get("/keys", response={200: KeysOut, **schemas.REFUSALS}, summary="List API keys")
def list_keys(
    request: HttpRequest,
    offset: Annotated[int, Query(ge=0, le=10**9)] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> KeysOut:
    """Return your own keys, as an admin everybody's; a key that is narrowed in any way only knows of itself.

    Refused for a key that acts for somebody else.
    """
    keys = _known_keys(principal_of(request))
    page = keys.select_related("user").prefetch_related("compartments", "push_connections")[offset : offset + limit]
    return KeysOut(keys=[KeyOut(**_facts(key)) for key in page], total=keys.count())


@router.post("/keys", response={201: IssuedKeyOut, **schemas.REFUSALS}, summary="Issue an API key")
def add_key(request: HttpRequest, response: HttpResponse, body: KeyIn) -> Status[IssuedKeyOut]:
    """Issue a key and tell its secret, this once. For yourself; as an admin for anyone.

    It ends after 90 days unless `expires_at` says otherwise; with null it never does. A key that is narrowed in any
    way, may not use every preset, ends or has a rate, issues none.
    """
    principal = principal_of(request)
    if _is_limited(principal):
        raise NotPermittedError("A key that is limited in any way issues no others.")
    key, secret = issue_key(user=_owner(principal, body), terms=_terms(principal, body), actor=principal.user)
    response.headers["Cache-Control"] = "no-store"
    return Status(201, IssuedKeyOut(**_facts(key), secret=secret))


@router.delete("/keys/{uuid:key_id}", response={200: KeyOut, **schemas.REFUSALS}, summary="Revoke an API key")
def remove_key(request: HttpRequest, key_id: UUID) -> KeyOut:
    """Stop a key for good; it stays in the list. One that is revoked already stays as it is."""
    principal = principal_of(request)
    key = _known_keys(principal).select_related("user").filter(pk=key_id).first()
    if key is None:
        raise NotFoundError("No API key with that id is visible to you.")
    revoke_key(key, actor=principal.user)
    key.refresh_from_db(fields=["revoked_at"])
    return KeyOut(**_facts(key))


def _known_keys(principal: Principal) -> QuerySet[ApiKey]:
    """Return the keys that the principal may know of and revoke; raise NotPermittedError for a forwarded request."""
    if principal.is_forwarded:
        raise NotPermittedError("A key that acts for somebody else manages no keys.")
    if principal.key is not None and _is_limited(principal):
        return ApiKey.objects.filter(pk=principal.key.pk)
    return ApiKey.objects.all() if principal.is_admin else ApiKey.objects.filter(user=principal.user)


def _is_limited(principal: Principal) -> bool:
    """Return whether the principal is a key that may do less than its user in any way, or that acts for another."""
    key = principal.key
    return key is not None and (
        principal.is_narrowed or key.expires_at is not None or key.requests_per_minute is not None
    )


def _owner(principal: Principal, body: KeyIn) -> User:
    username = storable(body.user)
    if username in {"", principal.user.username}:
        return principal.user
    if not principal.is_admin:
        raise NotPermittedError("Only an admin may issue a key for someone else.")
    return user_named(username)


def _terms(principal: Principal, body: KeyIn) -> KeyTerms:
    """Return what the key may do; raise NotFoundError for a compartment, preset or connection that is not known."""
    is_admin = principal.is_admin
    known = list(Compartment.objects.all()) if is_admin else seen_compartments(principal.user)
    compartments = {it.slug: it for it in known}
    connections = {it.slug: it for it in Connection.objects.filter(kind="push")} if is_admin else {}
    expires_at = body.expires_at
    if expires_at is not None:
        expires_at = expires_at if expires_at.tzinfo else expires_at.replace(tzinfo=UTC)
        if expires_at <= timezone.now():
            raise InvalidRequestError("expires_at: that is over already.")
    if body.push_connections and not is_admin:
        raise NotPermittedError("Only an admin may let a key push documents.")
    return KeyTerms(
        name=storable(body.name),
        expires_at=expires_at,
        max_sensitivity=Sensitivity[body.max_sensitivity.upper()].value if body.max_sensitivity else None,
        compartments=tuple(_found(compartments, body.compartments, "compartment")),
        presets=tuple(_found({name: name for name in PRESETS}, body.presets, "preset")),
        push_connections=tuple(_found(connections, body.push_connections, "connection to push to")),
        requests_per_minute=body.requests_per_minute,
    )


def _found(known: dict[str, _T], wanted: list[str], what: str) -> list[_T]:
    missing = [name for name in wanted if name not in known]
    if missing:
        raise NotFoundError(f"There is no {what} of that name that you may know of.")
    return [known[name] for name in dict.fromkeys(wanted)]


def _facts(key: ApiKey) -> dict[str, Any]:
    return {
        "id": key.pk,
        "name": key.name,
        "user": key.user.username,
        "prefix": key.prefix,
        "state": key_state(key, timezone.now()).value,
        "created_at": key.created_at,
        "expires_at": key.expires_at,
        "revoked_at": key.revoked_at,
        "last_used_at": key.last_used_at,
        "max_sensitivity": None if key.max_sensitivity is None else Sensitivity(key.max_sensitivity).name.lower(),
        "compartments": sorted(it.slug for it in key.compartments.all()),
        "presets": key.presets if isinstance(key.presets, list) else [],
        "push_connections": sorted(it.slug for it in key.push_connections.all()),
        "requests_per_minute": key.requests_per_minute,
    }
