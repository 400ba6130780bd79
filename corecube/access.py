"""The one access rule: who may see which connections. Every search starts from `scope_for`.

Visible = the connection is enabled, and a grant on its compartment, held by the user or one of the
user's groups, has a clearance of at least its sensitivity. A key can only narrow its user, a request
can only narrow both. A key that acts for somebody else opens what both its own user and they may see.
Anything else is denied.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from django.db import connection as database

from corecube.database import Prepared, execution
from corecube.errors import UnknownConnectionError, UnknownPrincipalError
from corecube.models import ApiKey, User
from corecube.scope import (
    AccessScope,
    ConnectionFacts,
    ExcludedConnection,
    Exclusion,
    FreshnessBasis,
    Inclusion,
    Sensitivity,
    TrustLevel,
)

# Every search pays for these two: as SQL, for Django takes as long to write them as the database to answer.
#: The grants of a user and of the user's groups as `_Grant` has them, the widest last.
_GRANTS: Final = Prepared("""
SELECT granted.compartment_id, granted.clearance, holder.username, team.name
FROM corecube_grant AS granted
LEFT JOIN corecube_user AS holder ON holder.id = granted.user_id
LEFT JOIN auth_group AS team ON team.id = granted.group_id
WHERE
    granted.user_id = %(user)s
    OR granted.group_id IN (SELECT group_id FROM corecube_user_groups WHERE user_id = %(user)s)
ORDER BY granted.clearance, granted.id DESC
""")
#: The connections of some compartments, or all, as `_Connection` has them; of these the ones with some slugs, or all.
_CONNECTIONS: Final = Prepared("""
SELECT
    source.id, source.slug, source.name, source.compartment_id, compartment.name, source.sensitivity, source.trust,
    source.half_life_days, source.freshness_basis, source.language, source.enabled
FROM corecube_connection AS source
JOIN corecube_compartment AS compartment ON compartment.id = source.compartment_id
WHERE
    (%(compartments)s::bigint[] IS NULL OR source.compartment_id = ANY(%(compartments)s::bigint[]))
    AND (%(slugs)s::text[] IS NULL OR source.slug = ANY(%(slugs)s::text[]))
ORDER BY source.name
""")


@dataclass(frozen=True, slots=True)
class Principal:
    """Who a request acts for: a signed-in user, or an API key acting as its user or for a user whom it names."""

    #: Whom searches, conversations and feedback belong to.
    user: User
    key: ApiKey | None = None
    #: The admin who looks through the user's eyes.
    actor: User | None = None

    @property
    def label(self) -> str:
        """The principal as people read it; somebody's own requests and an admin's as them have different ones."""
        if self.actor is not None:
            return f"{self.user.username} by {self.actor.username}"
        return f"{self.user.username} via key {self.key.prefix}…" if self.key else self.user.username

    @property
    def is_forwarded(self) -> bool:
        """Whether a key acts for somebody else than its own user."""
        return self.key is not None and self.key.user_id != self.user.pk

    @property
    def is_admin(self) -> bool:
        """Whether the request may administer; a key that acts for an admin must be an admin's itself."""
        return self.user.is_admin and (self.key is None or self.key.user.is_admin)

    @property
    def is_narrowed(self) -> bool:
        """Whether a key keeps the request from a part of what its user may do, or acts for somebody else."""
        key = self.key
        return key is not None and (
            self.is_forwarded or key.max_sensitivity is not None or key.presets != [] or bool(key.compartments.all())
        )

    def may_use(self, preset: str) -> bool:
        """Return whether the principal may search with a preset."""
        if self.key is None or self.key.presets == []:
            return True
        # The field takes any JSON; whatever is no list of names allows nothing.
        return isinstance(self.key.presets, list) and preset in self.key.presets


@dataclass(frozen=True, slots=True)
class ScopeRequest:
    """How a request narrows its principal's scope: connection slugs; an empty `include` means all."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


def user_named(username: str) -> User:
    """Return the active user with this name; raise UnknownPrincipalError."""
    user = User.objects.filter(username=username, is_active=True).first()
    if user is None:
        raise UnknownPrincipalError
    return user


def scope_for(
    principal: Principal, request: ScopeRequest | None = None, *, reveal_excluded: bool = False
) -> AccessScope:
    """Return what the principal may see.

    `reveal_excluded` lists the other connections with the rule that shut them out, for an admin's eyes.
    Raises UnknownConnectionError for a requested slug that the principal cannot see, whether or not it exists.
    """
    grants = _best_grants(principal.user)
    limits = _best_grants(principal.key.user) if principal.key and principal.is_forwarded else grants
    included: list[Inclusion] = []
    excluded: list[ExcludedConnection] = []
    # What is not to be told of is not read.
    for connection in _connections(None if reveal_excluded else grants, _named(request)):
        grant, limit = grants.get(connection.compartment_id), limits.get(connection.compartment_id)
        reason = _exclusion(connection, grant, limit, principal.key)
        if reason is None and grant is not None and limit is not None:
            clearance = Sensitivity(min(grant.clearance, limit.clearance))
            included.append(Inclusion(connection.facts, grant.holder, clearance))
        elif reason is not None and reveal_excluded:
            excluded.append(_excluded(connection, reason, grant))
    scope = AccessScope(principal.label, tuple(included), tuple(excluded))
    return _narrow(scope, request, reveal=reveal_excluded) if request else scope


class _Grant(NamedTuple):
    """What a grant opens, and who holds it."""

    compartment_id: int
    clearance: int
    username: str | None
    group: str | None

    @property
    def holder(self) -> str:
        """The grant's user or group as people read it: "group finance-eu"."""
        return f"group {self.group}" if self.username is None else f"user {self.username}"


class _Connection(NamedTuple):
    """What decides whether a connection may be seen, and what the engine needs to know of it."""

    id: int
    slug: str
    name: str
    compartment_id: int
    compartment: str
    sensitivity: int
    trust: int
    half_life_days: float
    freshness_basis: str
    language: str
    enabled: bool

    @property
    def facts(self) -> ConnectionFacts:
        """What the engine needs to know of it."""
        return ConnectionFacts(
            id=self.id,
            slug=self.slug,
            name=self.name,
            compartment=self.compartment,
            sensitivity=Sensitivity(self.sensitivity),
            trust=TrustLevel(self.trust),
            half_life_days=self.half_life_days,
            freshness_basis=FreshnessBasis(self.freshness_basis),
            language=self.language,
        )


def _best_grants(user: User) -> dict[int, _Grant]:
    """Return the user's widest grant per compartment id; none for an inactive user."""
    if not user.is_active:
        return {}
    rows = _rows(_GRANTS, {"user": user.pk})
    return {grant.compartment_id: grant for grant in map(_Grant._make, rows)}


def _named(request: ScopeRequest | None) -> tuple[str, ...]:
    """Return the only connections that a request is about, by slug; none where it is about all that may be seen."""
    return (*request.include, *request.exclude) if request and request.include else ()


def _connections(compartments: Collection[int] | None, slugs: Sequence[str]) -> Iterator[_Connection]:
    """Yield the connections by name: those of some compartments, or all to be told of; of these the ones with slugs."""
    if compartments is not None and not compartments:
        return iter(())
    # A text that PostgreSQL cannot hold is no slug.
    held = [slug for slug in slugs if slug.isascii() and slug.isprintable()]
    parameters = {
        "compartments": None if compartments is None else list(compartments),
        "slugs": held if slugs and compartments is not None else None,
    }
    return map(_Connection._make, _rows(_CONNECTIONS, parameters))


def _rows(sql: Prepared, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
    with database.cursor() as cursor:
        cursor.execute(execution(cursor, sql), parameters)
        return list(cursor.fetchall())


def _exclusion(
    connection: _Connection, grant: _Grant | None, limit: _Grant | None, key: ApiKey | None
) -> Exclusion | None:
    """Return the rule that shuts a connection out, or None when it may be seen.

    `limit` is the grant of the key's own user, the same as `grant` unless the key acts for somebody else.
    """
    if grant is None:
        return Exclusion.NO_GRANT
    if grant.clearance < connection.sensitivity:
        return Exclusion.CLEARANCE
    if limit is None or limit.clearance < connection.sensitivity:
        return Exclusion.KEY
    if key is not None and not _key_allows(key, connection):
        return Exclusion.KEY
    return None if connection.enabled else Exclusion.DISABLED


def _excluded(connection: _Connection, reason: Exclusion, grant: _Grant | None) -> ExcludedConnection:
    if grant is None:
        return ExcludedConnection(connection.facts, reason, is_enabled=connection.enabled)
    clearance = Sensitivity(grant.clearance)
    return ExcludedConnection(connection.facts, reason, grant.holder, clearance, connection.enabled)


def _key_allows(key: ApiKey, connection: _Connection) -> bool:
    """Return whether a key's narrowing leaves a connection in."""
    # `for_secret` prefetches the compartments, so this asks the database nothing per connection.
    compartments = {compartment.pk for compartment in key.compartments.all()}
    in_compartment = not compartments or connection.compartment_id in compartments
    return in_compartment and (key.max_sensitivity is None or connection.sensitivity <= key.max_sensitivity)


def _narrow(scope: AccessScope, request: ScopeRequest, *, reveal: bool) -> AccessScope:
    """Apply a request's include and exclude lists to a scope."""
    ids = {inclusion.connection.slug: inclusion.connection.id for inclusion in scope.included}
    _require_visible(ids, (*request.include, *request.exclude))
    wanted = request.include or tuple(ids)
    return scope.only((ids[slug] for slug in wanted if slug not in request.exclude), reveal=reveal)


def _require_visible(visible: Iterable[str], slugs: Iterable[str]) -> None:
    known = set(visible)
    for slug in slugs:
        if slug not in known:
            raise UnknownConnectionError
