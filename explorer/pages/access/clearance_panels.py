"""The matrix of clearances: a row for each group or user, a column for each compartment."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from corecube.grants import GrantChange, Holder, level_name
from corecube.models import AuditEvent, Compartment, Grant
from corecube.scope import Sensitivity
from explorer import wording
from explorer.pages.access.people_panels import reach_summary

LEVELS: Final = ("none", *(level.name.lower() for level in Sensitivity))

#: Clearances by kind and id of the holder, and by compartment id.
Clearances = Mapping[tuple[str, int, int], Sensitivity]


@dataclass(frozen=True, slots=True)
class Cell:
    """One clearance in the matrix."""

    holder: Holder
    compartment: str
    compartment_slug: str
    level: str

    @property
    def key(self) -> str:
        """The id in the page: "group-3-finance"."""
        return f"{self.holder.kind}-{self.holder.id}-{self.compartment_slug}"

    @property
    def label(self) -> str:
        """The label for screen readers."""
        return f"Clearance of {self.holder.label} on {self.compartment}"

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels to choose from."""
        return LEVELS


@dataclass(frozen=True, slots=True)
class Column:
    """A compartment with the number of connections at each sensitivity."""

    slug: str
    name: str
    #: "1 internal, 2 restricted".
    connections: str


@dataclass(frozen=True, slots=True)
class Row:
    """A holder's clearances, one for each compartment."""

    holder: Holder
    #: "4 people" in a group.
    note: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class ChangeNote:
    """The last change, with the values to undo it."""

    text: str
    tone: str = ""
    #: The current cell, and the level before the change; empty if there is nothing to undo.
    cell: Cell | None = None
    before: str = ""


def clearances_of(grants: Iterable[Grant]) -> Clearances:
    """Return the clearances of grants by holder and compartment."""
    return {
        ("user" if grant.user_id else "group", grant.user_id or grant.group_id or 0, grant.compartment_id): Sensitivity(
            grant.clearance
        )
        for grant in grants
    }


def columns(compartments: Iterable[Compartment]) -> tuple[Column, ...]:
    """Return the compartments' columns; their connections must be prefetched."""
    return tuple(Column(it.slug, it.name, _connection_counts(it)) for it in compartments)


def _connection_counts(compartment: Compartment) -> str:
    levels = [connection.sensitivity for connection in compartment.connections.all()]
    counts = ((levels.count(level), level.name.lower()) for level in Sensitivity)
    return ", ".join(f"{count} {name}" for count, name in counts if count) or "no connections"


def row(holder: Holder, compartments: Iterable[Compartment], grants: Clearances, *, note: str = "") -> Row:
    """Return a holder's row."""
    return Row(
        holder, note, tuple(cell(holder, it, grants.get((holder.kind, holder.id, it.pk))) for it in compartments)
    )


def cell(holder: Holder, compartment: Compartment, clearance: Sensitivity | None) -> Cell:
    """Return one cell."""
    return Cell(holder, compartment.name, compartment.slug, level_name(clearance))


def change_note(change: GrantChange) -> ChangeNote:
    """Return the note on a change, with an undo if anything changed."""
    if change.event is None:
        return ChangeNote(f"{change.holder.label} on {change.compartment.name} is already {level_name(change.after)}.")
    text = f"{_step(change.holder, change.compartment, level_name(change.before), level_name(change.after))}."
    now = cell(change.holder, change.compartment, change.after)
    return ChangeNote(f"{text} {reach_summary(change.reach)}", "good", now, level_name(change.before))


def earlier_change_note(event: AuditEvent, holder: Holder, compartment: Compartment) -> ChangeNote:
    """Return the note on a recorded change, with an undo."""
    before, after = str(event.details.get("before")), str(event.details.get("after"))
    now = Cell(holder, compartment.name, compartment.slug, after)
    return ChangeNote(f"{_step(holder, compartment, before, after)}.", "", now, before)


def _step(holder: Holder, compartment: Compartment, before: str, after: str) -> str:
    return f"{holder.label} on {compartment.name}: {before} \N{RIGHTWARDS ARROW} {after}"


def people_note(members: int) -> str:
    """Return the number of members as text."""
    return f"{members:,} {'person' if members == 1 else 'people'}"


def level_of(value: int) -> str:
    """Return a stored sensitivity as text."""
    return wording.level(Sensitivity(value))
