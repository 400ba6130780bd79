"""The scope: the connections that a search may read, and the rules that decided."""

from collections.abc import Collection, Iterable
from typing import Any, Final

from corecube.models import User
from corecube.scope import AccessScope, ConnectionFacts, ExcludedConnection, Inclusion
from explorer import wording

MAX_PEOPLE: Final = 50


def view_as(viewer: User) -> dict[str, Any] | None:
    """Return the active users for an admin, and how many are not listed; None for anyone else."""
    if not viewer.is_admin:
        return None
    active = User.objects.filter(is_active=True).order_by("username")
    people = list(active[:MAX_PEOPLE])
    # Count only if the list is full.
    return {"people": people, "unlisted": active.count() - len(people) if len(people) == MAX_PEOPLE else 0}


def scope_chips(scope: AccessScope, without: Collection[str]) -> tuple[dict[str, Any], ...]:
    """Return a chip for each connection of a principal's scope, of which a request excludes some.

    Only a scope for an admin lists connections that the principal may not see; they come last and cannot be switched.
    Files attached to conversations are searched in the chat only and have none.
    """
    included = (it for it in scope.included if not it.connection.is_attached)
    return (*(_chip(it, without) for it in included), *map(_closed_chip, scope.excluded))


def _chip(inclusion: Inclusion, without: Collection[str]) -> dict[str, Any]:
    slug = inclusion.connection.slug
    included = slug not in without
    others = tuple(it for it in without if it != slug)
    return {
        **_facts(inclusion.connection),
        "included": included,
        # The slugs to exclude after this chip is switched.
        "switched": (*others, slug) if included else others,
        "rule": wording.inclusion_rule(inclusion) if included else "excluded in this query",
    }


def _closed_chip(excluded: ExcludedConnection) -> dict[str, Any]:
    return {
        **_facts(excluded.connection),
        "included": False,
        "switched": None,
        "rule": wording.exclusion_rule(excluded),
        "why": wording.exclusion_word(excluded.reason),
    }


def _facts(connection: ConnectionFacts) -> dict[str, Any]:
    same = {name: getattr(connection, name) for name in ("slug", "name", "compartment")}
    return {**same, **{name: wording.level(getattr(connection, name)) for name in ("sensitivity", "trust")}}


def sources_label(chips: Collection[dict[str, Any]]) -> str:
    """Return how many connections a search reads: "10 connections", "7 of 10 connections"."""
    readable = [chip for chip in chips if chip["switched"] is not None]
    included = sum(chip["included"] for chip in readable)
    return (
        wording.counted(included, "connection")
        if included == len(readable)
        else f"{included} of {len(readable)} connections"
    )


def scope_rows(chips: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the connections of the scope table, the included ones first."""
    return sorted(chips, key=lambda chip: not chip["included"])
