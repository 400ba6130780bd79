"""The matrix of clearances: who holds which level on which compartment, a cell for each."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from corecube.grants import GrantChange, Holder, level_name
from corecube.models import AuditEvent, Compartment, Grant
from corecube.scope import Sensitivity
from explorer import wording
from explorer.pages.access.reach import reach_words

LEVELS: Final = ("none", *(level.name.lower() for level in Sensitivity))

#: Clearances by kind and id of their holder, and by compartment id.
Held = Mapping[tuple[str, int, int], Sensitivity]


@dataclass(frozen=True, slots=True)
class Cell:
    """One clearance, as it is chosen."""

    holder: Holder
    compartment: str
    compartment_slug: str
    level: str

    @property
    def key(self) -> str:
        """The cell's name in the page: "group-3-finance"."""
        return f"{self.holder.kind}-{self.holder.id}-{self.compartment_slug}"

    @property
    def label(self) -> str:
        """What a screen reader calls it."""
        return f"Clearance of {self.holder.label} on {self.compartment}"

    @property
    def levels(self) -> tuple[str, ...]:
        """What can be chosen."""
        return LEVELS


@dataclass(frozen=True, slots=True)
class Column:
    """A compartment, and how many connections stand at which sensitivity."""

    slug: str
    name: str
    #: "1 internal, 2 restricted".
    stands: str


@dataclass(frozen=True, slots=True)
class Row:
    """A holder's clearances, one for each compartment."""

    holder: Holder
    #: "4 people" in a group.
    note: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class ChangeNote:
    """The last change, and the way back from it."""

    text: str
    tone: str = ""
    #: Empty where there is nothing to take back: the cell as it is now, and the level it had.
    cell: Cell | None = None
    before: str = ""


def held(grants: Iterable[Grant]) -> Held:
    """Return grants by their holder and compartment."""
    return {
        ("user" if grant.user_id else "group", grant.user_id or grant.group_id or 0, grant.compartment_id): Sensitivity(
            grant.clearance
        )
        for grant in grants
    }


def columns(compartments: Iterable[Compartment]) -> tuple[Column, ...]:
    """Return the compartments' columns; their connections must be prefetched."""
    return tuple(Column(it.slug, it.name, _stands(it)) for it in compartments)


def _stands(compartment: Compartment) -> str:
    levels = [connection.sensitivity for connection in compartment.connections.all()]
    counts = ((levels.count(level), level.name.lower()) for level in Sensitivity)
    return ", ".join(f"{count} {name}" for count, name in counts if count) or "no connections"


def row(holder: Holder, compartments: Iterable[Compartment], grants: Held, *, note: str = "") -> Row:
    """Return a holder's row."""
    return Row(
        holder, note, tuple(cell(holder, it, grants.get((holder.kind, holder.id, it.pk))) for it in compartments)
    )


def cell(holder: Holder, compartment: Compartment, clearance: Sensitivity | None) -> Cell:
    """Return one cell."""
    return Cell(holder, compartment.name, compartment.slug, level_name(clearance))


def change_note(change: GrantChange) -> ChangeNote:
    """Return what a change did, with the way back; nothing to take back where nothing changed."""
    if change.event is None:
        return ChangeNote(f"{change.holder.label} on {change.compartment.name}: {level_name(change.after)} as before.")
    text = f"{_step(change.holder, change.compartment, level_name(change.before), level_name(change.after))}."
    now = cell(change.holder, change.compartment, change.after)
    return ChangeNote(f"{text} {reach_words(change.reach)}", "good", now, level_name(change.before))


def note_of(event: AuditEvent, holder: Holder, compartment: Compartment) -> ChangeNote:
    """Return an earlier change with the way back from it."""
    before, after = str(event.details.get("before")), str(event.details.get("after"))
    now = Cell(holder, compartment.name, compartment.slug, after)
    return ChangeNote(f"{_step(holder, compartment, before, after)}.", "", now, before)


def _step(holder: Holder, compartment: Compartment, before: str, after: str) -> str:
    return f"{holder.label} on {compartment.name}: {before} \N{RIGHTWARDS ARROW} {after}"


def people_note(members: int) -> str:
    """Return how many people a group has."""
    return f"{members:,} {'person' if members == 1 else 'people'}"


def level_of(value: int) -> str:
    """Return a stored sensitivity in a word."""
    return wording.level(Sensitivity(value))
