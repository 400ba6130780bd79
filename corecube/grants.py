"""Clearances of groups and users on compartments."""

from collections.abc import Collection
from dataclasses import dataclass

from django.contrib.auth.models import Group
from django.db.models import QuerySet

from corecube import audit
from corecube.database import atomic_change
from corecube.errors import ConflictError
from corecube.models import AuditEvent, Compartment, Grant, User
from corecube.reach import ReachChange, reach_change, reach_of
from corecube.scope import Sensitivity


@dataclass(frozen=True, slots=True)
class Holder:
    """The group or user of a grant."""

    kind: str
    id: int
    name: str

    @classmethod
    def of(cls, holder: User | Group) -> "Holder":
        """Return a user or a group as a holder of grants."""
        if isinstance(holder, User):
            return cls("user", holder.pk, holder.username)
        return cls("group", holder.pk, holder.name)

    @property
    def label(self) -> str:
        """The holder as text: "group finance-eu"."""
        return f"{self.kind} {self.name}"

    @property
    def grants(self) -> QuerySet[Grant]:
        """The grants of the holder."""
        return Grant.objects.filter(user=self.id) if self.kind == "user" else Grant.objects.filter(group=self.id)

    @property
    def people(self) -> QuerySet[User]:
        """The users to whom its grants apply."""
        return User.objects.filter(pk=self.id) if self.kind == "user" else User.objects.filter(groups=self.id)


@dataclass(frozen=True, slots=True)
class GrantChange:
    """A change of a clearance; `event` is None if it had that value already."""

    holder: Holder
    compartment: Compartment
    before: Sensitivity | None
    after: Sensitivity | None
    reach: ReachChange
    event: AuditEvent | None


@atomic_change()
def set_clearance(
    *,
    holder: Holder,
    compartment: Compartment,
    clearance: Sensitivity | None,
    expected: Sensitivity | None,
    actor: User,
) -> GrantChange:
    """Set the clearance of a holder on a compartment, or remove it for None.

    Raises ConflictError if the current clearance is not the `expected` one or the holder was deleted, NotFoundError
    if the compartment was.
    """
    # Changes in one compartment are serialized, also without a grant to lock.
    Compartment.objects.select_for_update().get(pk=compartment.pk)
    grant = holder.grants.filter(compartment=compartment).first()
    before = None if grant is None else Sensitivity(grant.clearance)
    if before != expected:
        raise ConflictError(f"The clearance of {holder.label} on {compartment.name} was changed in the meantime.")
    if before == clearance:
        return GrantChange(holder, compartment, before, clearance, ReachChange(), None)
    seen = reach_of(holder.people)
    if clearance is None:
        holder.grants.filter(compartment=compartment).delete()
    elif not holder.grants.filter(compartment=compartment).update(clearance=clearance):
        user, group = (holder.id, None) if holder.kind == "user" else (None, holder.id)
        Grant.objects.create(user_id=user, group_id=group, compartment=compartment, clearance=clearance)
    change = reach_change(seen, reach_of(holder.people))
    event = audit.record(
        "grant.changed",
        actor=actor,
        subject=f"{holder.label} on {compartment.slug}",
        compartment=compartment.slug,
        holder={"kind": holder.kind, "id": holder.id},
        before=level_name(before),
        after=level_name(clearance),
        gained=len(change.gained),
        lost=len(change.lost),
    )
    return GrantChange(holder, compartment, before, clearance, change, event)


@atomic_change()
def give_clearances(
    *, holders: Collection[Holder], compartments: Collection[Compartment], clearance: Sensitivity, actor: User
) -> ReachChange:
    """Give each holder at least this clearance on each compartment; return the change of access.

    A higher clearance stays as it is, so nobody loses access.
    """
    # In order, so that two of these do not wait for each other.
    locked = list(Compartment.objects.select_for_update().filter(pk__in=[it.pk for it in compartments]).order_by("pk"))
    ids = {person for holder in holders for person in holder.people.values_list("pk", flat=True)}
    people = User.objects.filter(pk__in=ids)
    seen = reach_of(people)
    for compartment in locked:
        for holder in holders:
            grant = holder.grants.filter(compartment=compartment).first()
            before = None if grant is None else Sensitivity(grant.clearance)
            if before is None or before < clearance:
                set_clearance(holder=holder, compartment=compartment, clearance=clearance, expected=before, actor=actor)
    return reach_change(seen, reach_of(people))


def level_name(clearance: Sensitivity | None) -> str:
    """Return the name of a clearance: "none", "internal"."""
    return "none" if clearance is None else clearance.name.lower()


def level_named(name: str) -> Sensitivity | None:
    """Return the clearance with this name, None for "none"; raise KeyError."""
    return None if name == "none" else Sensitivity[name.upper()]
