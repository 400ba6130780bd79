"""How far many people see at once, for telling an admin what a change of the grants does to them.

The rule is that of `corecube.access.scope_for`, in four queries whatever the number of people. It says who sees how
much and never decides what a request may read.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from django.db.models import QuerySet

from corecube.models import Connection, Grant, User

#: The ids of the connections that each person sees, by username. Those who are not active are not in it.
Reach = Mapping[str, frozenset[int]]


@dataclass(frozen=True, slots=True)
class ReachChange:
    """Who came to see more, and who less: numbers of connections by username."""

    gained: Mapping[str, int] = field(default_factory=dict)
    lost: Mapping[str, int] = field(default_factory=dict)


def reach_of(people: QuerySet[User]) -> Reach:
    """Return what the active among these people see."""
    names = dict(people.filter(is_active=True).values_list("pk", "username"))
    clearances = _clearances(names)
    connections = list(Connection.objects.filter(enabled=True).values_list("pk", "compartment_id", "sensitivity"))
    return {
        name: frozenset(
            pk
            for pk, compartment, sensitivity in connections
            if clearances.get((person, compartment), -1) >= sensitivity
        )
        for person, name in names.items()
    }


def _clearances(people: Collection[int]) -> dict[tuple[int, int], int]:
    """Return each person's widest clearance, by person and compartment; without a grant there is none."""
    own = Grant.objects.filter(user__in=people).values_list("user", "compartment", "clearance")
    through_groups = Grant.objects.filter(group__user__in=people).values_list("group__user", "compartment", "clearance")
    widest: dict[tuple[int, int], int] = {}
    for person, compartment, clearance in (*own, *through_groups):
        place = (int(person or 0), compartment)
        widest[place] = max(widest.get(place, -1), clearance)
    return widest


def reach_change(before: Reach, after: Reach) -> ReachChange:
    """Return what changed between two looks at the same people."""
    seen = {name: (before.get(name, frozenset()), after.get(name, frozenset())) for name in sorted({*before, *after})}
    return ReachChange(
        gained={name: len(new - old) for name, (old, new) in seen.items() if new - old},
        lost={name: len(old - new) for name, (old, new) in seen.items() if old - new},
    )
