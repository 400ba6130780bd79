"""Groups by the provider's groups claim: mappings of values, and memberships by sign-in."""

from collections.abc import Collection

from django.contrib.auth.models import Group
from django.db import IntegrityError, transaction

from corecube import audit
from corecube.errors import InvalidRequestError
from corecube.models import OidcGroup, OidcMembership, User
from corecube.reach import ReachChange, reach_change, reach_of


@transaction.atomic
def map_value(group: Group, value: str, *, actor: User) -> OidcGroup:
    """Map a value of the groups claim to a group, from the next sign-in.

    Raises InvalidRequestError for a value that is mapped already.
    """
    try:
        with transaction.atomic():
            made = OidcGroup.objects.create(value=value, group=group)
    except IntegrityError as error:
        raise InvalidRequestError("This value is already mapped to a group.") from error
    audit.record("group.claim_added", actor=actor, subject=group.name, value=value[:200])
    return made


@transaction.atomic
def unmap_value(mapping: OidcGroup, *, actor: User) -> ReachChange:
    """Remove the mapping of a value; return the change of access.

    Members by sign-in leave the group at once or, if other values are mapped to it, at their next sign-in.
    """
    group, value = mapping.group, mapping.value
    mapping.delete()
    if group.oidc_values.exists():
        removed, change = 0, ReachChange()
    else:
        people = list(User.objects.filter(oidc_memberships__group=group).values_list("pk", flat=True))
        same = User.objects.filter(pk__in=people)
        seen = reach_of(same)
        group.user_set.remove(*people)
        removed, change = len(people), reach_change(seen, reach_of(same))
    audit.record("group.claim_removed", actor=actor, subject=group.name, value=value[:200], members=removed)
    return change


def update_groups(user: User, values: Collection[str]) -> None:
    """Update the groups of a locked user by the values of the claim.

    Manual memberships are unchanged.
    """
    mapped = set(OidcGroup.objects.filter(value__in=list(values)).values_list("group", flat=True))
    marked = set(user.oidc_memberships.values_list("group", flat=True))
    current = set(user.groups.values_list("pk", flat=True))
    added, removed = mapped - current, marked - mapped
    user.groups.add(*added)
    user.groups.remove(*removed)
    OidcMembership.objects.bulk_create(OidcMembership(user=user, group_id=pk) for pk in added)
    if added or removed:
        names = dict(Group.objects.filter(pk__in=added | removed).values_list("pk", "name"))
        audit.record(
            "user.groups_changed",
            actor=None,
            subject=user.username,
            via="sign-in",
            added=sorted(names[pk] for pk in added),
            removed=sorted(names[pk] for pk in removed),
        )
