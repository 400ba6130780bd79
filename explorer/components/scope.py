"""The scope: which connections a search may read, and the rule that decided each."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from corecube.models import User
from corecube.scope import AccessScope, ConnectionFacts, ExcludedConnection
from explorer import wording

#: People that an admin is offered to look as.
MAX_PEOPLE: Final = 50


@dataclass(frozen=True, slots=True)
class ScopeChip:
    """A connection above the results. One that may be seen can be switched off and on again."""

    slug: str
    name: str
    compartment: str
    sensitivity: str
    included: bool
    #: The slugs to leave out once this chip is switched; None for a connection that no request can bring in.
    switched: tuple[str, ...] | None
    rule: str
    #: The rule in a word, for a connection that no request can bring in.
    why: str = ""


@dataclass(frozen=True, slots=True)
class ScopeRow:
    """A connection in the scope table."""

    name: str
    compartment: str
    sensitivity: str
    trust: str
    included: bool
    rule: str


@dataclass(frozen=True, slots=True)
class ViewAs:
    """Whose eyes an admin can look through, and how many people are not listed."""

    people: tuple[User, ...]
    unlisted: int


def view_as(viewer: User) -> ViewAs | None:
    """Return the active people, for an admin; None for anyone else, who learns of nobody."""
    if not viewer.is_admin:
        return None
    active = User.objects.filter(is_active=True).order_by("username")
    people = tuple(active[:MAX_PEOPLE])
    # Counting is only worth a query where the list is full.
    return ViewAs(people, active.count() - len(people) if len(people) == MAX_PEOPLE else 0)


def scope_chips(scope: AccessScope, without: Collection[str]) -> tuple[ScopeChip, ...]:
    """Return the chips of a principal's whole scope, of which a request leaves some out.

    Only a scope made for an admin's eyes lists connections that the principal may not see; they come last.
    """
    own = tuple(_own_chip(connection, rule, without) for connection, rule in _included(scope))
    return (*own, *(_closed_chip(excluded) for excluded in scope.excluded))


def _included(scope: AccessScope) -> Iterator[tuple[ConnectionFacts, str]]:
    return ((inclusion.connection, wording.inclusion_rule(inclusion)) for inclusion in scope.included)


def _own_chip(connection: ConnectionFacts, rule: str, without: Collection[str]) -> ScopeChip:
    included = connection.slug not in without
    others = tuple(slug for slug in without if slug != connection.slug)
    return ScopeChip(
        slug=connection.slug,
        name=connection.name,
        compartment=connection.compartment,
        sensitivity=wording.level(connection.sensitivity),
        included=included,
        switched=(*others, connection.slug) if included else others,
        rule=rule if included else "excluded in this query",
    )


def _closed_chip(excluded: ExcludedConnection) -> ScopeChip:
    connection = excluded.connection
    return ScopeChip(
        slug=connection.slug,
        name=connection.name,
        compartment=connection.compartment,
        sensitivity=wording.level(connection.sensitivity),
        included=False,
        switched=None,
        rule=wording.exclusion_rule(excluded),
        why=wording.exclusion_word(excluded.reason),
    )


def scope_rows(chips: Collection[ScopeChip], scope: AccessScope) -> tuple[ScopeRow, ...]:
    """Return the scope table: the chips' connections, the included first, each with its trust level."""
    trust = {
        connection.slug: wording.level(connection.trust)
        for connection in (
            *(inclusion.connection for inclusion in scope.included),
            *(excluded.connection for excluded in scope.excluded),
        )
    }
    rows = [
        ScopeRow(chip.name, chip.compartment, chip.sensitivity, trust[chip.slug], chip.included, chip.rule)
        for chip in chips
    ]
    return tuple(sorted(rows, key=lambda row: not row.included))
