"""The scope: the connections that a search may read, and the rules that decided."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from corecube.models import User
from corecube.scope import AccessScope, ExcludedConnection, Inclusion
from explorer import wording

MAX_PEOPLE: Final = 50


@dataclass(frozen=True, slots=True)
class _ScopeChip:
    """A connection above the results. One in scope can be excluded and included."""

    slug: str
    name: str
    compartment: str
    sensitivity: str
    included: bool
    #: The slugs to exclude after this chip is switched; None for a connection that no request can include.
    switched: tuple[str, ...] | None
    rule: str
    #: The rule in short, for a connection that no request can include.
    why: str = ""


@dataclass(frozen=True, slots=True)
class _ScopeRow:
    name: str
    compartment: str
    sensitivity: str
    trust: str
    included: bool
    rule: str


@dataclass(frozen=True, slots=True)
class _ViewAs:
    """The users that an admin can view as, and how many are not listed."""

    people: tuple[User, ...]
    unlisted: int


def view_as(viewer: User) -> _ViewAs | None:
    """Return the active users, for an admin; None for anyone else."""
    if not viewer.is_admin:
        return None
    active = User.objects.filter(is_active=True).order_by("username")
    people = tuple(active[:MAX_PEOPLE])
    # Count only if the list is full.
    return _ViewAs(people, active.count() - len(people) if len(people) == MAX_PEOPLE else 0)


def scope_chips(scope: AccessScope, without: Collection[str]) -> tuple[_ScopeChip, ...]:
    """Return the chips of a principal's scope, of which a request excludes some.

    Only a scope for an admin lists connections that the principal may not see; they come last.
    """
    return (*(_chip(it, without) for it in scope.included), *map(_closed_chip, scope.excluded))


def _chip(inclusion: Inclusion, without: Collection[str]) -> _ScopeChip:
    connection = inclusion.connection
    included = connection.slug not in without
    others = tuple(slug for slug in without if slug != connection.slug)
    return _ScopeChip(
        slug=connection.slug,
        name=connection.name,
        compartment=connection.compartment,
        sensitivity=wording.level(connection.sensitivity),
        included=included,
        switched=(*others, connection.slug) if included else others,
        rule=wording.inclusion_rule(inclusion) if included else "excluded in this query",
    )


def _closed_chip(excluded: ExcludedConnection) -> _ScopeChip:
    connection = excluded.connection
    return _ScopeChip(
        slug=connection.slug,
        name=connection.name,
        compartment=connection.compartment,
        sensitivity=wording.level(connection.sensitivity),
        included=False,
        switched=None,
        rule=wording.exclusion_rule(excluded),
        why=wording.exclusion_word(excluded.reason),
    )


def scope_rows(chips: Collection[_ScopeChip], scope: AccessScope) -> tuple[_ScopeRow, ...]:
    """Return the scope table: the chips' connections with their trust levels, the included ones first."""
    connections = (*(it.connection for it in scope.included), *(it.connection for it in scope.excluded))
    trust = {connection.slug: wording.level(connection.trust) for connection in connections}
    rows = (
        _ScopeRow(chip.name, chip.compartment, chip.sensitivity, trust[chip.slug], chip.included, chip.rule)
        for chip in chips
    )
    return tuple(sorted(rows, key=lambda row: not row.included))
