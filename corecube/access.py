"""The access rule: who can see which connections. Every search starts with `scope_for`.

A connection is visible if it is enabled and a grant on its compartment, to the user or one of their groups, has a
clearance of at least its sensitivity. A key can only limit the access of its user, and a request only that of both.
A key that acts for another user has access to what both users can see. What is private to a user, the memory of agents
and attached files, is closed to an admin who acts as that user. Everything else is denied.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple, Self

from django.db import connection as database

from corecube.database import Prepared, execution
from corecube.errors import UnknownConnectionError, UnknownPrincipalError
from corecube.models import ApiKey, Connection, User
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
#: The connections as `_Connection`, all or those in the compartments of the user's grants, optionally with some slugs.
_CONNECTIONS: Final = Prepared("""
SELECT
    source.id, source.slug, source.name, compartment.name, source.sensitivity, source.trust,
    source.half_life_days, source.freshness_basis, source.language, source.compartment_id, source.enabled,
    source.is_attached
FROM corecube_connection AS source
JOIN corecube_compartment AS compartment ON compartment.id = source.compartment_id
WHERE
    (
        %(is_all)s
        OR source.compartment_id IN (
            SELECT granted.compartment_id
            FROM corecube_grant AS granted
            WHERE
                granted.user_id = %(user)s
                OR granted.group_id IN (SELECT group_id FROM corecube_user_groups WHERE user_id = %(user)s)
        )
    )
    AND (%(slugs)s::text[] IS NULL OR source.slug = ANY(%(slugs)s::text[]))
ORDER BY source.name
""")

_RULED: Final = 64  #: Cached results of the access rule; each takes up to 1 kB for a connection.


@dataclass(frozen=True, slots=True)
class Principal:
    """On whose behalf a request acts: a user, signed in here or in a client, or a key for its user or a named one."""

    user: User  #: The owner of searches, conversations and feedback.
    key: ApiKey | None = None
    actor: User | None = None  #: The admin who acts as the user.
    client: str = ""  #: The name of the OAuth client through which the user acts.

    @property
    def label(self) -> str:
        """The principal as text, which differs for an admin who acts as the user."""
        if self.client:
            return f"{self.user.username} via {self.client}"
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
    """The connections that a request includes or excludes, by slug; an empty `include` means all but attached files."""

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
    """Return the connections that the principal can see; an admin who acts as a user does not see what is private.

    `reveal_excluded` also lists the other connections with the rule that excluded them, for admins.
    Raises UnknownConnectionError for a requested slug that the principal cannot see, whether or not it exists.
    """
    slugs = (*request.include, *request.exclude) if request and request.include and not reveal_excluded else ()
    grants, connections = _grants_and_connections(principal.user, slugs, is_all=reveal_excluded)
    if principal.actor is not None:
        private = set(Connection.objects.private().values_list("pk", flat=True))
        connections = tuple(row for row in connections if row[0] not in private)
    key = principal.key
    limits = _rows(_GRANTS, {"user": key.user_id}) if key and principal.is_forwarded and key.user.is_active else ()
    included, excluded = _ruled(
        connections,
        grants,
        grants if key is None or not principal.is_forwarded else limits,
        _KeyLimit.of(key) if key else None,
    )
    listed = tuple(it for it in excluded if not it.connection.is_attached) if reveal_excluded else ()
    scope = AccessScope(principal.label, included, listed)
    return _narrow(scope, request, reveal=reveal_excluded) if request else scope


class _KeyLimit(NamedTuple):
    """What a key allows of what its user can see."""

    compartments: frozenset[int]  #: Empty for all.
    max_sensitivity: int | None

    @classmethod
    def of(cls, key: ApiKey) -> Self:
        """Return the limit of a key."""
        return cls(frozenset(compartment.pk for compartment in key.compartments.all()), key.max_sensitivity)

    def allows(self, connection: "_Connection") -> bool:
        """Return whether the key allows a connection."""
        is_low = self.max_sensitivity is None or connection.facts.sensitivity <= self.max_sensitivity
        return is_low and (not self.compartments or connection.compartment_id in self.compartments)


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


_Rows = tuple[tuple[Any, ...], ...]


def _grants_and_connections(user: User, slugs: Sequence[str], *, is_all: bool) -> tuple[_Rows, _Rows]:
    """Return the rows of both statements, read together: those with these slugs, if any; none for an inactive user."""
    if not user.is_active and not is_all:
        return (), ()
    # Excludes text that PostgreSQL cannot store.
    valid = [slug for slug in slugs if slug.isascii() and slug.isprintable()]
    parameters = {"user": user.pk, "is_all": is_all, "slugs": valid if slugs else None}
    with database.cursor() as cursor:
        both = f"{execution(cursor, _GRANTS)};\n{execution(cursor, _CONNECTIONS)}"
        cursor.execute(both, parameters)
        grants = tuple(cursor.fetchall())
        cursor.nextset()
        return grants if user.is_active else (), tuple(cursor.fetchall())


def _rows(sql: Prepared, parameters: dict[str, Any]) -> _Rows:
    with database.cursor() as cursor:
        cursor.execute(execution(cursor, sql), parameters)
        return tuple(cursor.fetchall())


@lru_cache(maxsize=_RULED)
def _ruled(
    connections: _Rows, grants: _Rows, limits: _Rows, key: _KeyLimit | None
) -> tuple[tuple[Inclusion, ...], tuple[ExcludedConnection, ...]]:
    """Return the visible connections, and the others with the rule that excludes each.

    Cached by all that it depends on, as the database has it now. `limits` are the grants of the key's user, the same as
    `grants` unless the key acts for another user.
    """
    best, limiting = _best(grants), _best(limits)
    included: list[Inclusion] = []
    excluded: list[ExcludedConnection] = []
    for connection in map(_connection, connections):
        grant, limit = best.get(connection.compartment_id), limiting.get(connection.compartment_id)
        reason = _exclusion(connection, grant, limit, key)
        if reason is None and grant is not None and limit is not None:
            clearance = Sensitivity(min(grant.clearance, limit.clearance))
            included.append(Inclusion(connection.facts, grant.holder, clearance))
        elif reason is not None:
            via, held = (grant.holder, Sensitivity(grant.clearance)) if grant else ("", None)
            excluded.append(ExcludedConnection(connection.facts, reason, via, held, connection.enabled))
    return tuple(included), tuple(excluded)


def _best(grants: _Rows) -> dict[int, _Grant]:
    """Return the grant with the highest clearance by compartment id."""
    return {grant.compartment_id: grant for grant in map(_Grant._make, grants)}


def _connection(row: tuple[Any, ...]) -> _Connection:
    pk, slug, name, compartment, level, trust, half_life_days, basis, language, compartment_id, enabled, attached = row
    sensitivity, freshness = Sensitivity(level), FreshnessBasis(basis)
    facts = ConnectionFacts(
        pk, slug, name, compartment, sensitivity, TrustLevel(trust), half_life_days, freshness, language, attached
    )
    return _Connection(facts, compartment_id, enabled)


def _exclusion(
    connection: _Connection, grant: _Grant | None, limit: _Grant | None, key: _KeyLimit | None
) -> Exclusion | None:
    """Return the rule that excludes a connection, or None if it is visible."""
    sensitivity = connection.facts.sensitivity
    if grant is None:
        return Exclusion.NO_GRANT
    if grant.clearance < sensitivity:
        return Exclusion.CLEARANCE
    if limit is None or limit.clearance < sensitivity or (key is not None and not key.allows(connection)):
        return Exclusion.KEY
    return None if connection.enabled else Exclusion.DISABLED


def _narrow(scope: AccessScope, request: ScopeRequest, *, reveal: bool) -> AccessScope:
    ids = {inclusion.connection.slug: inclusion.connection.id for inclusion in scope.included}
    if not ids.keys() >= {*request.include, *request.exclude}:
        raise UnknownConnectionError
    wanted = request.include or tuple(it.connection.slug for it in scope.included if not it.connection.is_attached)
    return scope.only((ids[slug] for slug in wanted if slug not in request.exclude), reveal=reveal)
