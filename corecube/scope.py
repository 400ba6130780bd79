"""What one principal may see in one request: frozen data, free of Django, the only key to a search."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum


class Sensitivity(IntEnum):
    """How far a connection's content may travel; a clearance is the highest level that a grant opens."""

    PUBLIC = 0
    INTERNAL = 1
    CONFIDENTIAL = 2
    RESTRICTED = 3


class TrustLevel(IntEnum):
    """How much a source is believed; breaks near-ties in a ranking."""

    VOLATILE = 1
    REFERENCE = 2
    AUTHORITATIVE = 3


class FreshnessBasis(StrEnum):
    """The moment that a document's age is counted from."""

    SYNCED = "synced"
    MODIFIED = "modified"


class Exclusion(StrEnum):
    """Why a connection is outside a scope."""

    NO_GRANT = "no_grant"
    CLEARANCE = "sensitivity"
    KEY = "key_narrowing"
    REQUEST = "scope_excluded"
    DISABLED = "disabled"


@dataclass(frozen=True, slots=True)
class ConnectionFacts:
    """What the engine needs to know of a connection, read once per request."""

    id: int
    slug: str
    name: str
    compartment: str
    sensitivity: Sensitivity
    trust: TrustLevel
    half_life_days: float
    freshness_basis: FreshnessBasis
    #: PostgreSQL text search configuration of its documents; empty for the installation's own.
    language: str = ""


@dataclass(frozen=True, slots=True)
class Inclusion:
    """A connection inside the scope, and the grant that opened it."""

    connection: ConnectionFacts
    #: "group finance-eu" or "user maya".
    via: str
    clearance: Sensitivity


@dataclass(frozen=True, slots=True)
class ExcludedConnection:
    """A connection outside the scope, kept only for a viewer who may know of it (an admin)."""

    connection: ConnectionFacts
    reason: Exclusion
    #: The widest grant on its compartment, which fell short or did not decide; empty and None without one.
    via: str = ""
    clearance: Sensitivity | None = None
    #: Whether it is enabled: otherwise no grant alone would open it.
    is_enabled: bool = True


@dataclass(frozen=True, slots=True)
class AccessScope:
    """The connections that one principal may see in one request.

    Only `corecube.access.scope_for` makes one, so every search has been through the access rule.
    A request can narrow it (`only`), nothing can widen it.
    """

    principal: str
    included: tuple[Inclusion, ...]
    excluded: tuple[ExcludedConnection, ...] = ()
    _by_id: Mapping[int, Inclusion] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Index the inclusions by connection."""
        object.__setattr__(self, "_by_id", {inclusion.connection.id: inclusion for inclusion in self.included})

    @property
    def connection_ids(self) -> list[int]:
        """The allowed connections' ids, ascending; a list, as the database driver wants one."""
        return sorted(self._by_id)

    def allows(self, connection_id: int) -> bool:
        """Return whether documents of this connection may be shown."""
        return connection_id in self._by_id

    def inclusion(self, connection_id: int) -> Inclusion:
        """Return the rule that lets a connection in; raise KeyError for one that is not in scope."""
        return self._by_id[connection_id]

    def only(self, connection_ids: Iterable[int], *, reveal: bool) -> "AccessScope":
        """Return the scope narrowed to these connections; the rest are listed as excluded if `reveal`."""
        kept = frozenset(connection_ids)
        dropped = tuple(
            ExcludedConnection(inclusion.connection, Exclusion.REQUEST, inclusion.via, inclusion.clearance)
            for inclusion in self.included
            if inclusion.connection.id not in kept
        )
        return AccessScope(
            principal=self.principal,
            included=tuple(inclusion for inclusion in self.included if inclusion.connection.id in kept),
            excluded=(*self.excluded, *dropped) if reveal else (),
        )
