"""Rows of compartments and sensitivity levels."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from corecube.grants import Holder
from corecube.models import Compartment, Connection, Grant
from corecube.reach import Reach
from corecube.scope import Sensitivity
from explorer.pages.access.clearance_panels import level_of

_MEANINGS: Final[Mapping[Sensitivity, str]] = {
    Sensitivity.PUBLIC: "May be shared outside the organisation. Any clearance on the compartment is sufficient.",
    Sensitivity.INTERNAL: "For members of the organisation only.",
    Sensitivity.CONFIDENTIAL: "For those who need it for their work. A leak would cause harm.",
    Sensitivity.RESTRICTED: "For a few named people. A leak would cause serious harm.",
}


@dataclass(frozen=True, slots=True)
class LevelRow:
    """A sensitivity level with its number of connections."""

    name: str
    meaning: str
    connections: int


@dataclass(frozen=True, slots=True)
class ConnectionLine:
    """A connection in its compartment."""

    slug: str
    name: str
    sensitivity: str
    enabled: bool
    documents: int
    #: Number of users who can see it.
    people: int


@dataclass(frozen=True, slots=True)
class HolderLine:
    """A group or user with its clearance."""

    holder: Holder
    level: str


@dataclass(frozen=True, slots=True)
class CompartmentRow:
    """A compartment in the list."""

    slug: str
    name: str
    description: str
    connections: tuple[ConnectionLine, ...]
    documents: int
    holders: tuple[HolderLine, ...]


def level_rows(connections: Iterable[int]) -> tuple[LevelRow, ...]:
    """Return the levels, lowest first, with the number of connections at each."""
    levels = list(connections)
    return tuple(LevelRow(it.name.lower(), _MEANINGS[it], levels.count(it.value)) for it in Sensitivity)


def compartment_row(compartment: Compartment, documents: Mapping[int, int], reach: Reach) -> CompartmentRow:
    """Return a compartment's row; its connections and grants must be prefetched."""
    lines = tuple(_line(it, documents, reach) for it in compartment.connections.all())
    holders = [_holder(grant) for grant in compartment.grants.all()]
    return CompartmentRow(
        slug=compartment.slug,
        name=compartment.name,
        description=compartment.description,
        connections=lines,
        documents=sum(line.documents for line in lines),
        holders=tuple(sorted(holders, key=lambda it: (it.holder.kind, it.holder.name))),
    )


def _line(connection: Connection, documents: Mapping[int, int], reach: Reach) -> ConnectionLine:
    return ConnectionLine(
        slug=connection.slug,
        name=connection.name,
        sensitivity=level_of(connection.sensitivity),
        enabled=connection.enabled,
        documents=documents.get(connection.pk, 0),
        people=sum(connection.pk in seen for seen in reach.values()),
    )


def _holder(grant: Grant) -> HolderLine:
    owner = grant.user or grant.group
    if owner is None:
        raise ValueError("A grant names either a user or a group.")
    return HolderLine(Holder.of(owner), level_of(grant.clearance))
