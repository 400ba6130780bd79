"""Who may see a connection, and what a change of its compartment or sensitivity does to that."""

from dataclasses import dataclass

from django.db.models import Q

from corecube.models import Grant, User


@dataclass(frozen=True, slots=True)
class Sight:
    """Who may see what lies in a compartment at a sensitivity."""

    #: Names, in order, of the groups with a grant that reaches.
    groups: tuple[str, ...]
    #: Names, in order, of the active users, by a grant of their own or of a group.
    users: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SightChange:
    """Who begins and who ceases to see a connection."""

    gaining: Sight
    losing: Sight

    def __bool__(self) -> bool:
        """Whether anybody's sight changes."""
        return any((self.gaining.users, self.losing.users, self.gaining.groups, self.losing.groups))


def sight_of(compartment_id: int, sensitivity: int) -> Sight:
    """Return who may see a connection of this compartment and sensitivity, once it is enabled."""
    grants = Grant.objects.filter(compartment_id=compartment_id, clearance__gte=sensitivity)
    held = Q(grants__in=grants) | Q(groups__grants__in=grants)
    users = User.objects.filter(held, is_active=True).order_by("username").values_list("username", flat=True)
    groups = grants.filter(group__isnull=False).order_by("group__name").values_list("group__name", flat=True)
    return Sight(tuple(name for name in groups if name), tuple(users.distinct()))


def sight_change(before: Sight, after: Sight) -> SightChange:
    """Return the difference between two."""
    return SightChange(gaining=_without(after, before), losing=_without(before, after))


def _without(sight: Sight, other: Sight) -> Sight:
    return Sight(
        tuple(name for name in sight.groups if name not in other.groups),
        tuple(name for name in sight.users if name not in other.users),
    )
