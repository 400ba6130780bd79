"""The access rule: who can see which connections. Every search starts with `scope_for`.

A connection is visible if it is enabled and a grant on its compartment, to the user or one of their groups, has a
clearance of at least its sensitivity. A key can only limit the access of its user, and a request only that of both.
A key that acts for another user has access to what both users can see. Everything else is denied.
"""

from collections.abc import Collection, Iterator, Sequence
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

# SQL, because every search runs these two, and Django's ORM takes as long to compile them as the database to run them.
#: The grants of a user and their groups as `_Grant`, the highest clearance last.
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
#: The connections as `_Connection`, optionally only those of some compartments and with some slugs.
_CONNECTIONS: Final = Prepared("""
SELECT
    source.id, source.slug, source.name, compartment.name, source.sensitivity, source.trust,
    source.half_life_days, source.freshness_basis, source.language, source.compartment_id, source.enabled
FROM corecube_connection AS source
JOIN corecube_compartment AS compartment ON compartment.id = source.compartment_id
WHERE
    (%(compartments)s::bigint[] IS NULL OR source.compartment_id = ANY(%(compartments)s::bigint[]))
    AND (%(slugs)s::text[] IS NULL OR source.slug = ANY(%(slugs)s::text[]))
ORDER BY source.name
""")


@dataclass(frozen=True, slots=True)
class Principal:
    """On whose behalf a request acts: a signed-in user, or an API key for its user or for a named user."""

    user: User  #: The owner of searches, conversations and feedback.
    key: ApiKey | None = None
    actor: User | None = None  #: The admin who acts as the user.

    @property
    def label(self) -> str:
        """The principal as text, which differs for an admin who acts as the user."""
        if self.actor is not None:
            return f"{self.user.username} by {self.actor.username}"
        return f"{self.user.username} via key {self.key.prefix}…" if self.key else self.user.username

    @property
    def is_forwarded(self) -> bool:
        """Whether a key acts for another user than its own."""
        return self.key is not None and self.key.user_id != self.user.pk

    @property
    def is_admin(self) -> bool:
        """Whether the request has admin rights; a key that acts for an admin must belong to an admin."""
        return self.user.is_admin and (self.key is None or self.key.user.is_admin)

    @property
    def is_narrowed(self) -> bool:
        """Whether a key limits the request, or acts for another user."""
        key = self.key
        return key is not None and (
            self.is_forwarded or key.max_sensitivity is not None or key.presets != [] or bool(key.compartments.all())
        )

    def may_use(self, preset: str) -> bool:
        """Return whether the principal may search with a preset."""
        if self.key is None or self.key.presets == []:
            return True
        # The field accepts any JSON; anything but a list allows nothing.
        return isinstance(self.key.presets, list) and preset in self.key.presets


@dataclass(frozen=True, slots=True)
class ScopeRequest:
    """The connections that a request includes or excludes, by slug; an empty `include` means all."""

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
    """Return the connections that the principal can see.

    `reveal_excluded` also lists the other connections with the rule that excluded them, for admins.
    Raises UnknownConnectionError for a requested slug that the principal cannot see, whether or not it exists.
    """
    grants = _best_grants(principal.user)
    limits = _best_grants(principal.key.user) if principal.key and principal.is_forwarded else grants
    included: list[Inclusion] = []
    excluded: list[ExcludedConnection] = []
    slugs = (*request.include, *request.exclude) if request and request.include else ()
    for connection in _connections(None if reveal_excluded else grants, slugs):
        grant, limit = grants.get(connection.compartment_id), limits.get(connection.compartment_id)
        reason = _exclusion(connection, grant, limit, principal.key)
        if reason is None and grant is not None and limit is not None:
            clearance = Sensitivity(min(grant.clearance, limit.clearance))
            included.append(Inclusion(connection.facts, grant.holder, clearance))
        elif reason is not None and reveal_excluded:
            via, held = (grant.holder, Sensitivity(grant.clearance)) if grant else ("", None)
            excluded.append(ExcludedConnection(connection.facts, reason, via, held, connection.enabled))
    scope = AccessScope(principal.label, tuple(included), tuple(excluded))
    return _narrow(scope, request, reveal=reveal_excluded) if request else scope


class _Grant(NamedTuple):
    compartment_id: int
    clearance: int
    username: str | None
    group: str | None

    @property
    def holder(self) -> str:
        """The user or group as text: "group finance-eu"."""
        return f"group {self.group}" if self.username is None else f"user {self.username}"


class _Connection(NamedTuple):
    facts: ConnectionFacts
    compartment_id: int
    enabled: bool


def _best_grants(user: User) -> dict[int, _Grant]:
    """Return the user's grant with the highest clearance by compartment id; none for an inactive user."""
    if not user.is_active:
        return {}
    return {grant.compartment_id: grant for grant in map(_Grant._make, _rows(_GRANTS, {"user": user.pk}))}


def _connections(compartments: Collection[int] | None, slugs: Sequence[str]) -> Iterator[_Connection]:
    """Yield the connections by name: of all compartments for None; with these slugs, if any."""
    if compartments is not None and not compartments:
        return
    # Excludes text that PostgreSQL cannot store.
    valid = [slug for slug in slugs if slug.isascii() and slug.isprintable()]
    parameters = {
        "compartments": None if compartments is None else list(compartments),
        "slugs": valid if slugs and compartments is not None else None,
    }
    for row in _rows(_CONNECTIONS, parameters):
        pk, slug, name, compartment, level, trust, half_life_days, basis, language, compartment_id, enabled = row
        sensitivity, freshness = Sensitivity(level), FreshnessBasis(basis)
        facts = ConnectionFacts(
            pk, slug, name, compartment, sensitivity, TrustLevel(trust), half_life_days, freshness, language
        )
        yield _Connection(facts, compartment_id, enabled)


def _rows(sql: Prepared, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
    with database.cursor() as cursor:
        cursor.execute(execution(cursor, sql), parameters)
        return list(cursor.fetchall())


def _exclusion(
    connection: _Connection, grant: _Grant | None, limit: _Grant | None, key: ApiKey | None
) -> Exclusion | None:
    """Return the rule that excludes a connection, or None if it is visible.

    `limit` is the grant of the key's user, the same as `grant` unless the key acts for another user.
    """
    sensitivity = connection.facts.sensitivity
    if grant is None:
        return Exclusion.NO_GRANT
    if grant.clearance < sensitivity:
        return Exclusion.CLEARANCE
    if limit is None or limit.clearance < sensitivity:
        return Exclusion.KEY
    if key is not None:
        # `for_secret` prefetches the compartments, so there is no query per connection.
        compartments = {compartment.pk for compartment in key.compartments.all()}
        in_compartment = not compartments or connection.compartment_id in compartments
        if not in_compartment or (key.max_sensitivity is not None and sensitivity > key.max_sensitivity):
            return Exclusion.KEY
    return None if connection.enabled else Exclusion.DISABLED


def _narrow(scope: AccessScope, request: ScopeRequest, *, reveal: bool) -> AccessScope:
    ids = {inclusion.connection.slug: inclusion.connection.id for inclusion in scope.included}
    if not ids.keys() >= {*request.include, *request.exclude}:
        raise UnknownConnectionError
    wanted = request.include or tuple(ids)
    return scope.only((ids[slug] for slug in wanted if slug not in request.exclude), reveal=reveal)
