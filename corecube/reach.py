"""Who can see which connections, for showing an admin what a change does. No request is authorized by it.

`reach_of` and `access_to` apply the rule of `corecube.access.scope_for` to many people in a few queries.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from django.contrib.auth.models import Group
from django.db.models import Q, QuerySet

from corecube.models import Compartment, Connection, Grant, User

#: The ids of the connections that each person can see, by username; inactive people are left out.
Reach = Mapping[str, frozenset[int]]


@dataclass(frozen=True, slots=True)
class ReachChange:
    """Who gained and who lost access: numbers of connections by username."""

    gained: Mapping[str, int] = field(default_factory=dict)
    lost: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ConnectionAccess:
    """Who can see a connection: groups by their grants, active users by their own or a group's; names in order."""

    groups: tuple[str, ...]
    users: tuple[str, ...]

    def without(self, other: "ConnectionAccess") -> "ConnectionAccess":
        """Return the groups and users that `other` lacks."""
        return ConnectionAccess(
            tuple(name for name in self.groups if name not in other.groups),
            tuple(name for name in self.users if name not in other.users),
        )


@dataclass(frozen=True, slots=True)
class AccessChange:
    """Who gains and who loses access to a connection."""

    gaining: ConnectionAccess
    losing: ConnectionAccess

    def __bool__(self) -> bool:
        """Whether access changes for anybody."""
        return any((self.gaining.users, self.losing.users, self.gaining.groups, self.losing.groups))


def access_to(compartment_id: int, sensitivity: int) -> ConnectionAccess:
    """Return who can see an enabled connection of this compartment and sensitivity."""
    grants = Grant.objects.filter(compartment_id=compartment_id, clearance__gte=sensitivity)
    cleared = Q(grants__in=grants) | Q(groups__grants__in=grants)
    users = User.objects.filter(cleared, is_active=True).order_by("username").values_list("username", flat=True)
    groups = grants.filter(group__isnull=False).order_by("group__name").values_list("group__name", flat=True)
    return ConnectionAccess(tuple(name for name in groups if name), tuple(users.distinct()))


def access_change(before: ConnectionAccess, after: ConnectionAccess) -> AccessChange:
    """Return the difference between two."""
    return AccessChange(gaining=after.without(before), losing=before.without(after))


def reach_of(people: QuerySet[User]) -> Reach:
    """Return the connections that the active ones of these people can see."""
    names = dict(people.filter(is_active=True).values_list("pk", "username"))
    direct = Grant.objects.filter(user__in=names).values_list("user", "compartment", "clearance")
    through_groups = Grant.objects.filter(group__user__in=names).values_list("group__user", "compartment", "clearance")
    highest: dict[tuple[int, int], int] = {}
    for holder, granted, clearance in (*direct, *through_groups):
        key = (int(holder or 0), granted)
        highest[key] = max(highest.get(key, -1), clearance)
    connections = list(Connection.objects.filter(enabled=True).values_list("pk", "compartment_id", "sensitivity"))
    return {
        name: frozenset(
            pk for pk, compartment, sensitivity in connections if highest.get((person, compartment), -1) >= sensitivity
        )
        for person, name in names.items()
    }


def visible_with(groups: Iterable[Group], compartments: Iterable[Compartment], clearance: int) -> tuple[str, ...]:
    """Return the names of the enabled connections that a member of the groups with this clearance can see."""
    levels = {it.pk: clearance for it in compartments}
    for compartment, level in Grant.objects.filter(group__in=list(groups)).values_list("compartment", "clearance"):
        levels[compartment] = max(levels.get(compartment, -1), level)
    found = Connection.objects.filter(enabled=True).order_by("name")
    rows = found.values_list("name", "compartment_id", "sensitivity")
    return tuple(name for name, compartment, sensitivity in rows if levels.get(compartment, -1) >= sensitivity)


def reach_change(before: Reach, after: Reach) -> ReachChange:
    """Return the difference between two results of `reach_of` for the same people."""
    seen = {name: (before.get(name, frozenset()), after.get(name, frozenset())) for name in sorted({*before, *after})}
    return ReachChange(
        gained={name: len(new - old) for name, (old, new) in seen.items() if new - old},
        lost={name: len(old - new) for name, (old, new) in seen.items() if old - new},
    )
