"""Reading section sets: the shipped ones, and untrusted mappings."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from corecube.data import read_toml
from corecube.errors import ConfigError
from retrieval.errors import TunablesError
from retrieval.presets.consolidated.evidence.sections import (
    FIELDS,
    NUMBERS,
    TEXTS,
    TYPE_FLOORS,
    TYPE_LISTS,
    Defaults,
    Section,
    SectionSet,
    SourceType,
)

SHIPPED: Final = ("property_memo", "report")
_MAX_SECTIONS: Final = 100
_DECLARED: Final = {facts.name: facts for facts in Section.declared()}


@cache
def shipped(name: str) -> SectionSet:
    """Return a shipped section set; raise ConfigError for another name."""
    if name not in SHIPPED:
        raise ConfigError(f"Unknown section set {name!r}. Available sets: {', '.join(SHIPPED)}.")
    return read_section_set(read_toml("retrieval.presets.consolidated.evidence", f"section_sets/{name}.toml"))


def read_section_set(written: object) -> SectionSet:
    """Return the section set that a mapping describes, as `SectionSet.to_mapping` writes it.

    Raises TunablesError with all problems by dotted names: "financial_analysis.score_floor".
    """
    reading = _Reading()
    found = reading.section_set(written)
    if reading.problems or found is None:
        raise TunablesError(reading.problems)
    return found


@dataclass
class _Reading:
    problems: dict[str, str] = field(default_factory=dict)

    def section_set(self, written: object) -> SectionSet | None:
        """Return the set; None with problems."""
        table = self._table("section_set", written, {"name", "title", "source_types", "defaults", "sections"})
        own = self._table("defaults", table.get("defaults", {}), {*NUMBERS, "never_recovered"})
        defaults = Defaults(
            numbers={name: self._number(f"defaults.{name}", name, own[name]) for name in NUMBERS if name in own},
            never_recovered=self._names("defaults.never_recovered", own.get("never_recovered", [])),
        )
        source_types = []
        for place, row in enumerate(self._list("source_types", table.get("source_types")), start=1):
            where = f"source_types.{place}"
            it = self._table(where, row, {"name", "also"})
            type_name = self._text(f"{where}.name", it.get("name"))
            source_types.append(SourceType(type_name, self._names(f"{where}.also", it.get("also", []))))
        rows = self._list("sections", table.get("sections"))
        sections: tuple[Section, ...] = ()
        if len(rows) > _MAX_SECTIONS:
            self.problems["sections"] = f"must not be more than {_MAX_SECTIONS}"
        else:
            read = (self._section(place, row, defaults) for place, row in enumerate(rows, start=1))
            sections = tuple(section for section in read if section is not None)
        name, title = self._text("name", table.get("name")), self._text("title", table.get("title"))
        if self.problems:
            return None
        try:
            return SectionSet(
                name=name, title=title, source_types=tuple(source_types), sections=sections, defaults=defaults
            )
        except ConfigError as error:
            self.problems["section_set"] = f"is invalid: {str(error).rstrip('.')}"
            return None

    def _section(self, place: int, written: object, defaults: Defaults) -> Section | None:
        name = written.get("name") if isinstance(written, Mapping) else None
        where = name if isinstance(name, str) and name.isidentifier() else f"sections.{place}"
        before = len(self.problems)
        table = self._table(where, written, set(FIELDS))
        read = {
            **dict.fromkeys(TEXTS, self._text),
            **dict.fromkeys(TYPE_LISTS, self._names),
            **dict.fromkeys(TYPE_FLOORS, self._floors),
        }
        values: dict[str, Any] = {
            **defaults.values,
            **{name: read_one(f"{where}.{name}", table[name]) for name, read_one in read.items() if name in table},
            **{name: self._number(f"{where}.{name}", name, table[name]) for name in NUMBERS if name in table},
        }
        for needed in ("name", "title", "template"):
            if needed not in values:
                self.problems[f"{where}.{needed}"] = "is missing"
        if len(self.problems) > before:
            return None
        try:
            return Section(**values)
        except ConfigError as error:
            self.problems[where] = f"is invalid: {str(error).rstrip('.')}"
            return None

    def _table(self, where: str, written: object, known: set[str]) -> Mapping[str, object]:
        if not isinstance(written, Mapping):
            self.problems[where] = "must be a table of values"
            return {}
        for name in written:
            if name not in known:
                self.problems[f"{where}.{name}"] = "is unknown"
        return {name: value for name, value in written.items() if name in known}

    def _list(self, where: str, written: object) -> list[object]:
        if not isinstance(written, list | tuple):
            self.problems[where] = "must be a list"
            return []
        return list(written)

    def _text(self, where: str, written: object) -> str:
        if not isinstance(written, str):
            self.problems[where] = "must be a text"
            return ""
        return written

    def _names(self, where: str, written: object) -> tuple[str, ...]:
        return tuple(self._text(where, it) for it in self._list(where, written))

    def _number(self, where: str, name: str, written: object) -> float:
        if problem := _DECLARED[name].problem(written):
            self.problems[where] = problem
            return _DECLARED[name].default
        return _DECLARED[name].typed(written)  # type: ignore[arg-type]  # a value without a problem is a number

    def _floors(self, where: str, written: object) -> dict[str, int]:
        if not isinstance(written, Mapping):
            self.problems[where] = "must be a table of values"
            return {}
        found = {}
        for name, count in written.items():
            if isinstance(count, bool) or not isinstance(count, int):
                self.problems[f"{where}.{name}"] = "must be a whole number"
            else:
                found[str(name)] = count
        return found
