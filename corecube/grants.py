"""Changing who may see what: the clearance of a group or a user on a compartment."""

from dataclasses import dataclass

from django.contrib.auth.models import Group
from django.db.models import QuerySet

from corecube import audit
from corecube.changing import changing
from corecube.errors import ConflictError
from corecube.models import AuditEvent, Compartment, Grant, User
from corecube.reach import ReachChange, reach_change, reach_of
from corecube.scope import Sensitivity


@dataclass(frozen=True, slots=True)
class Holder:
    """Who a grant is given to: a group, or one user."""

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
        """The holder as people read it: "group finance-eu"."""
        return f"{self.kind} {self.name}"

    @property
    def grants(self) -> QuerySet[Grant]:
        """The holder's own grants."""
        return Grant.objects.filter(user=self.id) if self.kind == "user" else Grant.objects.filter(group=self.id)

    @property
    def people(self) -> QuerySet[User]:
        """Whom its grants are for."""
        return User.objects.filter(pk=self.id) if self.kind == "user" else User.objects.filter(groups=self.id)


@dataclass(frozen=True, slots=True)
class GrantChange:
    """A clearance that was changed; `event` is None where it was that already."""

    holder: Holder
    compartment: Compartment
    before: Sensitivity | None
    after: Sensitivity | None
    reach: ReachChange
    event: AuditEvent | None


@changing()
def set_clearance(
    *,
    holder: Holder,
    compartment: Compartment,
    clearance: Sensitivity | None,
    was: Sensitivity | None,
    actor: User,
) -> GrantChange:
    """Give a holder this clearance on a compartment, or take its grant away for None.

    `was` is the clearance that the change was made from. Raises ConflictError when it is another one by now, or the
    holder is gone, NotFoundError when the compartment is.
    """
    # Two changes in one compartment come one after the other, also where there is no grant to lock yet.
    Compartment.objects.select_for_update().get(pk=compartment.pk)
    grant = holder.grants.filter(compartment=compartment).first()
    before = None if grant is None else Sensitivity(grant.clearance)
    if before != was:
        raise ConflictError(f"The clearance of {holder.label} on {compartment.name} has been changed in the meantime.")
    if before == clearance:
        return GrantChange(holder, compartment, before, clearance, ReachChange(), None)
    seen = reach_of(holder.people)
    _write(holder, compartment, clearance)
    change = reach_change(seen, reach_of(holder.people))
    event = _record(holder, compartment, before, clearance, actor, change)
    return GrantChange(holder, compartment, before, clearance, change, event)


def _write(holder: Holder, compartment: Compartment, clearance: Sensitivity | None) -> None:
    if clearance is None:
        holder.grants.filter(compartment=compartment).delete()
        return
    if not holder.grants.filter(compartment=compartment).update(clearance=clearance):
        user, group = (holder.id, None) if holder.kind == "user" else (None, holder.id)
        Grant.objects.create(user_id=user, group_id=group, compartment=compartment, clearance=clearance)


def _record(
    holder: Holder,
    compartment: Compartment,
    before: Sensitivity | None,
    after: Sensitivity | None,
    actor: User,
    change: ReachChange,
) -> AuditEvent:
    return audit.record(
        "grant.changed",
        actor=actor,
        subject=f"{holder.label} on {compartment.slug}",
        compartment=compartment.slug,
        holder={"kind": holder.kind, "id": holder.id},
        before=level_name(before),
        after=level_name(after),
        gained=len(change.gained),
        lost=len(change.lost),
    )


def level_name(clearance: Sensitivity | None) -> str:
    """Return a clearance in a word: "none", "internal"."""
    return "none" if clearance is None else clearance.name.lower()


def level_named(name: str) -> Sensitivity | None:
    """Return the clearance with this name, None for "none"; raise KeyError."""
    return None if name == "none" else Sensitivity[name.upper()]
