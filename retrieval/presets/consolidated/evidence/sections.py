"""Sections, each the retrieval policy for one part of a report, and sets of them for one kind of report."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from string import Formatter
from typing import Final

from corecube.errors import ConfigError
from retrieval.engine.tunables import Tunables, costly, fraction, tunable
from retrieval.text.traits import HINTS

NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,59}")
_MAX_TITLE: Final = 120
_MAX_TEMPLATE: Final = 500
_PLACEHOLDERS: Final = frozenset({"subject"})
TYPE_LISTS: Final = ("required", "optional", "never_recovered")
TYPE_FLOORS: Final = ("quantity_floors", "survivor_floors")
TEXTS: Final = ("name", "title", "template", "hint")
_EMPTY: Final[Mapping[str, object]] = {
    "hint": "",
    **dict.fromkeys(TYPE_LISTS, ()),
    **{name: {} for name in TYPE_FLOORS},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Section(Tunables):
    """A named retrieval policy. Raises ConfigError for values out of bounds and contradictions.

    `required` types are recovered when a pool has fewer than their quantity floor; `optional` and `never_recovered`
    types never are.
    """

    name: str  #: Small letters, digits and _, at most 60.
    title: str
    template: str  #: The query; {subject} is the subject of the report.
    complexity: int = tunable(
        10,
        low=1,
        high=100,
        unit="chunks",
        help="Chunks requested if three to ten documents are in scope; otherwise more.",
        at_most="cap",
    )
    cap: int = costly(100, low=8, high=200, unit="chunks", help="Maximum number of chunks requested.")
    keep: int = tunable(8, low=1, high=100, unit="chunks", help="Chunks retained after reranking.", at_most="cap")
    score_floor: float = fraction(0.0, unit="similarity", help="Minimum scaled similarity of a chunk to the query.")
    quality_floor: float = fraction(0.0, help="Minimum quality of a chunk.")
    hint: str = ""  #: The kind of content of its chunks; empty for any.
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    never_recovered: tuple[str, ...] = ()
    #: Minimum number of chunks of a required type in the pool; 1 by default.
    quantity_floors: Mapping[str, int] = field(default_factory=dict)
    #: Minimum number of chunks of a required type after the final cut; 1 by default.
    survivor_floors: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Not super(): slots=True creates a new class, which super() does not know.
        Tunables.__post_init__(self)
        for name, problem in self.contradictions():
            raise ConfigError(f"The section's {name} {problem}.")

    @property
    def source_types(self) -> frozenset[str]:
        """Every source type that it names."""
        return frozenset((*self.required, *self.optional, *self.never_recovered))

    def query(self, subject: str) -> str:
        """Return the query for a report about the subject; without a subject the rest of the template."""
        return " ".join(self.template.format(subject=subject).split())

    def quantity_floor(self, source_type: str) -> int:
        """Return the minimum number of chunks of a type in the pool; 0 for a type that is not required."""
        return self.quantity_floors.get(source_type, 1) if source_type in self.required else 0

    def survivor_floor(self, source_type: str) -> int:
        """Return the minimum number of chunks of a type after the final cut; 0 for a type that is not required."""
        return self.survivor_floors.get(source_type, 1) if source_type in self.required else 0

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield the invalid and contradictory fields, each with its problem."""
        if not NAME.fullmatch(self.name):
            yield "name", "must start with a letter and have at most 60 lowercase letters, digits and _"
        if not 0 < len(self.title.strip()) <= _MAX_TITLE:
            yield "title", f"must have 1 to {_MAX_TITLE} characters"
        if problem := _template_problem(self.template):
            yield "template", problem
        if self.hint and self.hint not in HINTS:
            yield "hint", f"must be one of {', '.join(sorted(HINTS))}"
        for name in TYPE_LISTS:
            types: tuple[str, ...] = getattr(self, name)
            if len(set(types)) < len(types):
                yield name, "contains a source type twice"
            if name != "required" and (both := sorted(set(self.required) & set(types))):
                yield name, f"contains required source types: {', '.join(both)}"
        yield from self._floors("quantity_floors", self.quantity_floors, "cap", self.cap)
        yield from self._floors("survivor_floors", self.survivor_floors, "keep", self.keep)

    def _floors(self, name: str, floors: Mapping[str, int], bound: str, limit: int) -> Iterator[tuple[str, str]]:
        if others := sorted(set(floors) - set(self.required)):
            yield name, f"contains types that are not required: {', '.join(others)}"
        if any(floor < 1 for floor in floors.values()):
            yield name, "must be 1 or more"
        if sum(floors.values()) > limit:
            yield name, f"must not exceed {bound} together"


NUMBERS: Final = tuple(facts.name for facts in Section.declared())
FIELDS: Final = tuple(item.name for item in fields(Section))


def _template_problem(template: str) -> str:
    if not 0 < len(template.strip()) <= _MAX_TEMPLATE:
        return f"must have 1 to {_MAX_TEMPLATE} characters"
    try:
        parts = list(Formatter().parse(template))
    except ValueError:
        return "has an unmatched brace"
    known = all(
        name is None or (name in _PLACEHOLDERS and not spec and not conversion) for _, name, spec, conversion in parts
    )
    return "" if known else "must have no placeholder except {subject}"


@dataclass(frozen=True, slots=True)
class SourceType:
    """A canonical source type of a section set."""

    name: str
    also: tuple[str, ...] = ()  #: Source types of documents that count as it.

    @property
    def all_names(self) -> tuple[str, ...]:
        """The source types of documents that count as it."""
        return (self.name, *self.also)


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """The default values of sections."""

    numbers: Mapping[str, float] = field(default_factory=dict)
    never_recovered: tuple[str, ...] = ()

    @property
    def values(self) -> dict[str, object]:
        """The defaults by field name of a section."""
        return {**_EMPTY, **self.numbers, "never_recovered": self.never_recovered}


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionSet:
    """Sections in the order of their report. Raises ConfigError for duplicate or unknown names."""

    name: str
    title: str
    source_types: tuple[SourceType, ...]  #: In order of precedence, most trusted first.
    sections: tuple[Section, ...]
    defaults: Defaults = field(default_factory=Defaults)

    def __post_init__(self) -> None:
        for name, problem in self.contradictions():
            raise ConfigError(f"The section set's {name} {problem}.")

    @property
    def precedence(self) -> tuple[str, ...]:
        """The canonical source types, most trusted first."""
        return tuple(it.name for it in self.source_types)

    def section(self, name: str) -> Section | None:
        """Return the section of this name; None without one."""
        return next((it for it in self.sections if it.name == name), None)

    def canonical(self, source_type: str) -> str:
        """Return the canonical name of a document's source type; an unknown one unchanged."""
        return next((it.name for it in self.source_types if source_type in it.all_names), source_type)

    def stored_as(self, canonical: str) -> tuple[str, ...]:
        """Return the source types of documents that count as a canonical one: for filters."""
        return next((it.all_names for it in self.source_types if it.name == canonical), (canonical,))

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield the problems between its parts, by dotted names."""
        if not NAME.fullmatch(self.name):
            yield "name", "must start with a letter and have at most 60 lowercase letters, digits and _"
        if not self.title.strip():
            yield "title", "must not be empty"
        if not self.sections:
            yield "sections", "must not be empty"
        sections = [it.name for it in self.sections]
        if len(set(sections)) < len(sections):
            yield "sections", "contain a name twice"
        types = [name for it in self.source_types for name in it.all_names]
        if len(set(types)) < len(types):
            yield "source_types", "contain a name twice"
        if any(not NAME.fullmatch(name) for name in types):
            yield "source_types", "must start with a letter and have only lowercase letters, digits and _"
        known = set(self.precedence)
        for name, named in (
            ("defaults", set(self.defaults.never_recovered)),
            *((it.name, set(it.source_types)) for it in self.sections),
        ):
            if unknown := sorted(named - known):
                yield name, f"has unknown source types: {', '.join(unknown)}"

    def to_mapping(self) -> dict[str, object]:
        """Return it as JSON. Default values of sections are left out, so that they follow later changes."""
        left_out = self.defaults.values
        own = ({name: getattr(section, name) for name in FIELDS} for section in self.sections)
        return {
            "name": self.name,
            "title": self.title,
            "source_types": [{"name": it.name, "also": list(it.also)} for it in self.source_types],
            "defaults": {**self.defaults.numbers, "never_recovered": list(self.defaults.never_recovered)},
            "sections": [
                {name: _plain(value) for name, value in it.items() if name not in left_out or value != left_out[name]}
                for it in own
            ],
        }


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else value
