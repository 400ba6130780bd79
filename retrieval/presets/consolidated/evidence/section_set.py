"""Section sets: the sections of one kind of report, over source types in their order of precedence."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from corecube.errors import ConfigError
from retrieval.presets.consolidated.evidence.sections import FIELDS, NAME, TYPE_FLOORS, TYPE_LISTS, Section

_EMPTY: Final[Mapping[str, object]] = {
    "hint": "",
    **dict.fromkeys(TYPE_LISTS, ()),
    **{name: {} for name in TYPE_FLOORS},
}


@dataclass(frozen=True, slots=True)
class SourceType:
    """A canonical source type of a section set."""

    name: str
    #: Source types of documents that count as it.
    also: tuple[str, ...] = ()

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
    #: In order of precedence, most trusted first.
    source_types: tuple[SourceType, ...]
    sections: tuple[Section, ...]
    defaults: Defaults = field(default_factory=Defaults)

    def __post_init__(self) -> None:
        """Raise ConfigError for the first problem."""
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
            yield "name", "must be small letters, digits and _, beginning with a letter, at most 60"
        if not self.title.strip():
            yield "title", "must not be empty"
        if not self.sections:
            yield "sections", "must not be empty"
        yield from self._repetitions()
        known = set(self.precedence)
        for name, types in (
            ("defaults", set(self.defaults.never_recovered)),
            *((it.name, set(it.source_types)) for it in self.sections),
        ):
            if unknown := sorted(types - known):
                yield name, f"names source types that the set does not have: {', '.join(unknown)}"

    def _repetitions(self) -> Iterator[tuple[str, str]]:
        sections = [it.name for it in self.sections]
        if len(set(sections)) < len(sections):
            yield "sections", "have a name twice"
        types = [name for it in self.source_types for name in it.all_names]
        if len(set(types)) < len(types):
            yield "source_types", "have a name twice"
        if any(not NAME.fullmatch(name) for name in types):
            yield "source_types", "must be small letters, digits and _, beginning with a letter"

    def to_mapping(self) -> dict[str, object]:
        """Return it as JSON. Default values of sections are left out, so that they follow later changes."""
        return {
            "name": self.name,
            "title": self.title,
            "source_types": [{"name": it.name, "also": list(it.also)} for it in self.source_types],
            "defaults": {**self.defaults.numbers, "never_recovered": list(self.defaults.never_recovered)},
            "sections": [_written(section, self.defaults) for section in self.sections],
        }


def _written(section: Section, defaults: Defaults) -> dict[str, object]:
    left_out = defaults.values
    own = {name: getattr(section, name) for name in FIELDS}
    return {name: _plain(value) for name, value in own.items() if name not in left_out or value != left_out[name]}


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else value
