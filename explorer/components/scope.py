"""The scope: the connections that a search may read, and the rules that decided."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Final

from corecube.models import User
from corecube.scope import AccessScope, ConnectionFacts, ExcludedConnection, Inclusion
from explorer import wording

MAX_PEOPLE: Final = 50


@dataclass(frozen=True, slots=True)
class _ScopeChip:
    """A connection above the results. One in scope can be excluded and included."""

    slug: str
    name: str
    compartment: str
    sensitivity: str
    trust: str
    included: bool
    #: The slugs to exclude after this chip is switched; None for a connection that no request can include.
    switched: tuple[str, ...] | None
    rule: str
    why: str = ""  #: The rule in short, for a connection that no request can include.


def view_as(viewer: User) -> dict[str, Any] | None:
    """Return the active users for an admin, and how many are not listed; None for anyone else."""
    if not viewer.is_admin:
        return None
    active = User.objects.filter(is_active=True).order_by("username")
    people = list(active[:MAX_PEOPLE])
    # Count only if the list is full.
    return {"people": people, "unlisted": active.count() - len(people) if len(people) == MAX_PEOPLE else 0}


def scope_chips(scope: AccessScope, without: Collection[str]) -> tuple[_ScopeChip, ...]:
    """Return the chips of a principal's scope, of which a request excludes some.

    Only a scope for an admin lists connections that the principal may not see; they come last.
    """
    return (*(_chip(it, without) for it in scope.included), *map(_closed_chip, scope.excluded))


def _chip(inclusion: Inclusion, without: Collection[str]) -> _ScopeChip:
    slug = inclusion.connection.slug
    included = slug not in without
    others = tuple(it for it in without if it != slug)
    return _ScopeChip(
        **_facts(inclusion.connection),
        included=included,
        switched=(*others, slug) if included else others,
        rule=wording.inclusion_rule(inclusion) if included else "excluded in this query",
    )


def _closed_chip(excluded: ExcludedConnection) -> _ScopeChip:
    return _ScopeChip(
        **_facts(excluded.connection),
        included=False,
        switched=None,
        rule=wording.exclusion_rule(excluded),
        why=wording.exclusion_word(excluded.reason),
    )


def _facts(connection: ConnectionFacts) -> dict[str, Any]:
    same = {name: getattr(connection, name) for name in ("slug", "name", "compartment")}
    return {**same, **{name: wording.level(getattr(connection, name)) for name in ("sensitivity", "trust")}}


def scope_rows(chips: Iterable[_ScopeChip]) -> list[_ScopeChip]:
    """Return the connections of the scope table, the included ones first."""
    return sorted(chips, key=lambda chip: not chip.included)
