"""The connections that one request may search: immutable data, free of Django."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum


class Sensitivity(IntEnum):
    """How confidential a connection is; a clearance is the highest level that a grant allows."""

    PUBLIC = 0
    INTERNAL = 1
    CONFIDENTIAL = 2
    RESTRICTED = 3


class TrustLevel(IntEnum):
    """How reliable a source is; breaks near-ties in a ranking."""

    VOLATILE = 1
    REFERENCE = 2
    AUTHORITATIVE = 3


class FreshnessBasis(StrEnum):
    """The time from which the age of a document is counted."""

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
    """The properties of a connection that the engine needs, read once per request."""

    id: int
    slug: str
    name: str
    compartment: str
    sensitivity: Sensitivity
    trust: TrustLevel
    half_life_days: float
    freshness_basis: FreshnessBasis
    language: str = ""  #: PostgreSQL text search configuration of its documents; empty for the default.
    is_attached: bool = False  #: Files of a conversation: searched only where a request names them.


@dataclass(frozen=True, slots=True)
class Inclusion:
    """A connection in the scope, with the grant that allows it."""

    connection: ConnectionFacts
    via: str  #: "group finance-eu" or "user maya".
    clearance: Sensitivity


@dataclass(frozen=True, slots=True)
class ExcludedConnection:
    """A connection outside the scope, listed only for admins."""

    connection: ConnectionFacts
    reason: Exclusion
    via: str = ""  #: The highest grant on its compartment, if any; empty and None otherwise.
    clearance: Sensitivity | None = None
    is_enabled: bool = True  #: Whether it is enabled; otherwise no grant is sufficient.


@dataclass(frozen=True, slots=True)
class AccessScope:
    """The connections that one principal can see in one request.

    Only `corecube.access.scope_for` creates one, so every search applies the access rule.
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
        """The ids of the allowed connections, ascending; a list for the database driver."""
        return sorted(self._by_id)

    @property
    def trust(self) -> dict[int, TrustLevel]:
        """The trust level of each allowed connection, by its id."""
        return {inclusion.connection.id: inclusion.connection.trust for inclusion in self.included}

    def allows(self, connection_id: int) -> bool:
        """Return whether documents of this connection may be shown."""
        return connection_id in self._by_id

    def inclusion(self, connection_id: int) -> Inclusion:
        """Return the inclusion of a connection; raise KeyError for one that is not in scope."""
        return self._by_id[connection_id]

    def only(self, connection_ids: Iterable[int], *, reveal: bool) -> "AccessScope":
        """Return the scope narrowed to these connections; the rest are listed as excluded if `reveal`."""
        retained = frozenset(connection_ids)
        dropped = tuple(
            ExcludedConnection(inclusion.connection, Exclusion.REQUEST, inclusion.via, inclusion.clearance)
            for inclusion in self.included
            if inclusion.connection.id not in retained
        )
        return AccessScope(
            principal=self.principal,
            included=tuple(inclusion for inclusion in self.included if inclusion.connection.id in retained),
            excluded=(*self.excluded, *dropped) if reveal else (),
        )
