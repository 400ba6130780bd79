"""Groups that follow from the provider's claims: which value opens which group, and who is in one by a sign-in."""

from collections.abc import Collection

from django.contrib.auth.models import Group
from django.db import IntegrityError, transaction

from corecube import audit
from corecube.errors import InvalidRequestError
from corecube.models import OidcGroup, OidcMembership, User
from corecube.reach import ReachChange, reach_change, reach_of


@transaction.atomic
def map_value(group: Group, value: str, *, actor: User) -> OidcGroup:
    """Let a value of the groups claim open a group from the next sign-in on.

    Raises InvalidRequestError for a value that opens a group already.
    """
    try:
        with transaction.atomic():
            made = OidcGroup.objects.create(value=value, group=group)
    except IntegrityError as error:
        raise InvalidRequestError("This value opens a group already.") from error
    audit.record("group.claim_added", actor=actor, subject=group.name, value=value[:200])
    return made


@transaction.atomic
def unmap_value(mapping: OidcGroup, *, actor: User) -> ReachChange:
    """Let a value open its group no longer; return what people lost sight of.

    Whom sign-ins put into the group leave it at once, unless another value opens it: then at their next sign-in.
    """
    group, value = mapping.group, mapping.value
    mapping.delete()
    if group.oidc_values.exists():
        gone, change = 0, ReachChange()
    else:
        people = list(User.objects.filter(oidc_memberships__group=group).values_list("pk", flat=True))
        same = User.objects.filter(pk__in=people)
        seen = reach_of(same)
        group.user_set.remove(*people)
        gone, change = len(people), reach_change(seen, reach_of(same))
    audit.record("group.claim_removed", actor=actor, subject=group.name, value=value[:200], members=gone)
    return change


def follow_claims(user: User, values: Collection[str]) -> None:
    """Put a user, whose row is locked, into the groups that the values open, and out of those that none opens any more.

    Memberships that somebody made by hand stay as they are.
    """
    wanted = set(OidcGroup.objects.filter(value__in=list(values)).values_list("group", flat=True))
    marked = set(user.oidc_memberships.values_list("group", flat=True))
    held = set(user.groups.values_list("pk", flat=True))
    added, removed = wanted - held, marked - wanted
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
