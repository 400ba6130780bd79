"""GET, POST and DELETE /api/v1/keys."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Final, Literal, TypeVar
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Query, Router, Status
from pydantic import BaseModel, Field, StringConstraints

from corecube.access import Principal, user_named
from corecube.api import principal_of
from corecube.database import first_or
from corecube.errors import InvalidRequestError, NotFoundError, NotPermittedError
from corecube.keys import KeyTerms, issue_key, key_state, revoke_key, visible_compartments
from corecube.models import ApiKey, Compartment, Connection, User
from corecube.models.access import MAX_REQUESTS_PER_MINUTE
from corecube.sanitise import storable
from corecube.scope import Sensitivity
from retrieval.api.schemas import REFUSALS, StrictBody, filled, links
from retrieval.presets.catalog import PRESETS

Level = Literal["public", "internal", "confidential", "restricted"]
_Slug = Annotated[str, StringConstraints(max_length=50)]


DEFAULT_DAYS: Final = 90  #: Days until a key expires if the request has no end.
router = Router(tags=["keys"])
_T = TypeVar("_T")


class KeyIn(StrictBody):
    """A key to issue. It never has more access than its user."""

    name: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=120)]
    user: str = Field(default="", max_length=150, description="Owner of the key; for admins. Empty: yourself.")
    expires_at: datetime | None = Field(
        default_factory=lambda: timezone.now() + timedelta(days=DEFAULT_DAYS),
        description=f"UTC if no time zone is given. Omitted: in {DEFAULT_DAYS} days. Null: never.",
    )
    max_sensitivity: Level | None = Field(default=None, description="Limits it to this level and below.")
    compartments: list[_Slug] = Field(default=[], max_length=200, description="Limits it to these, by slug.")
    presets: list[_Slug] = Field(default=[], max_length=50, description="The presets it may use; empty: all.")
    push_connections: list[_Slug] = Field(
        default=[], max_length=200, description="Slugs of connections that it may push documents to; for admins."
    )
    requests_per_minute: int | None = Field(default=None, ge=1, le=MAX_REQUESTS_PER_MINUTE)


class KeyOut(BaseModel):
    """A key, without its secret."""

    id: UUID
    name: str
    user: str
    prefix: str
    state: str = Field(description="active, owner inactive, expired or revoked.")
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    max_sensitivity: str | None
    compartments: list[str]
    presets: list[str]
    push_connections: list[str]
    requests_per_minute: int | None


class IssuedKeyOut(KeyOut):
    """A new key with its secret, which is shown only once."""

    secret: str


_Key = TypeVar("_Key", bound=KeyOut)


class KeysOut(BaseModel):
    """Keys, the newest first."""

    keys: list[KeyOut]
    total: int


@router.get("/keys", response={200: KeysOut, **REFUSALS}, summary="List API keys")
def list_keys(
    request: HttpRequest,
    offset: Annotated[int, Query(ge=0, le=10**9)] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> KeysOut:
    """Return your keys, or all keys for admins; a key with any limit sees only itself.

    Refused for a key that acts for another user.
    """
    keys = _known_keys(principal_of(request))
    page = keys.select_related("user").prefetch_related("compartments", "push_connections")[offset : offset + limit]
    return KeysOut(keys=[_shown(KeyOut, key) for key in page], total=keys.count())


@router.post(
    "/keys",
    response={201: IssuedKeyOut, **REFUSALS},
    openapi_extra={"responses": {201: links(__name__, "key_id", "id", "remove_key")}},
    summary="Issue an API key",
)
def add_key(request: HttpRequest, response: HttpResponse, body: KeyIn) -> Status[IssuedKeyOut]:
    """Issue a key for yourself, or as an admin for any user. The response is the only one with its secret.

    Without `expires_at` it expires after 90 days; with null never. A key with any limit (scope, presets, expiry or
    rate) cannot issue keys.
    """
    principal = principal_of(request)
    if _is_limited(principal):
        raise NotPermittedError("A key with limits cannot issue other keys.")
    key, secret = issue_key(user=_owner(principal, body), terms=_terms(principal, body), actor=principal.user)
    response.headers["Cache-Control"] = "no-store"
    return Status(201, _shown(IssuedKeyOut, key, secret=secret))


@router.delete("/keys/{uuid:key_id}", response={200: KeyOut, **REFUSALS}, summary="Revoke an API key")
def remove_key(request: HttpRequest, key_id: UUID) -> KeyOut:
    """Revoke a key permanently; it stays in the list. A revoked key is not changed."""
    principal = principal_of(request)
    unknown = NotFoundError("You cannot see an API key with that id.")
    key = first_or(unknown, _known_keys(principal).select_related("user").filter(pk=key_id))
    revoke_key(key, actor=principal.user)
    key.refresh_from_db(fields=["revoked_at"])
    return _shown(KeyOut, key)


def _known_keys(principal: Principal) -> QuerySet[ApiKey]:
    """Return the keys that the principal may see and revoke; raise NotPermittedError for a forwarded request."""
    if principal.is_forwarded:
        raise NotPermittedError("A key that acts for another user cannot manage keys.")
    if principal.key is not None and _is_limited(principal):
        return ApiKey.objects.filter(pk=principal.key.pk)
    return ApiKey.objects.all() if principal.is_admin else ApiKey.objects.filter(user=principal.user)


def _is_limited(principal: Principal) -> bool:
    """Return whether the principal is a key with any limit or one that acts for another user."""
    key = principal.key
    return key is not None and (
        principal.is_narrowed or key.expires_at is not None or key.requests_per_minute is not None
    )


def _owner(principal: Principal, body: KeyIn) -> User:
    username = storable(body.user)
    if username in {"", principal.user.username}:
        return principal.user
    if not principal.is_admin:
        raise NotPermittedError("Only an admin may issue a key for another user.")
    return user_named(username)


def _terms(principal: Principal, body: KeyIn) -> KeyTerms:
    """Return the limits of the key; raise NotFoundError for an unknown compartment, preset or connection."""
    is_admin = principal.is_admin
    known = list(Compartment.objects.all()) if is_admin else visible_compartments(principal.user)
    compartments = {it.slug: it for it in known}
    connections = {it.slug: it for it in Connection.objects.listed().filter(kind="push")} if is_admin else {}
    expires_at = body.expires_at
    if expires_at is not None:
        expires_at = expires_at if expires_at.tzinfo else expires_at.replace(tzinfo=UTC)
        if expires_at <= timezone.now():
            raise InvalidRequestError("expires_at: this time is in the past.")
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
    if not known.keys() >= set(wanted):
        raise NotFoundError(f"No {what} with that name is visible to you.")
    return [known[name] for name in dict.fromkeys(wanted)]


def _shown(schema: type[_Key], key: ApiKey, **given: str) -> _Key:
    return filled(
        schema,
        key,
        user=key.user.username,
        state=key_state(key, timezone.now()).value,
        max_sensitivity=None if key.max_sensitivity is None else Sensitivity(key.max_sensitivity).name.lower(),
        compartments=sorted(it.slug for it in key.compartments.all()),
        presets=key.presets if isinstance(key.presets, list) else [],
        push_connections=sorted(it.slug for it in key.push_connections.all()),
        **given,
    )
