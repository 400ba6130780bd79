"""Clearances of groups and users on compartments."""

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


def level_name(clearance: Sensitivity | None) -> str:
    """Return the name of a clearance: "none", "internal"."""
    return "none" if clearance is None else clearance.name.lower()


def level_named(name: str) -> Sensitivity | None:
    """Return the clearance with this name, None for "none"; raise KeyError."""
    return None if name == "none" else Sensitivity[name.upper()]
