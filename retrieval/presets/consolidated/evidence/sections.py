"""A section: the retrieval policy for one part of a report."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from string import Formatter
from typing import Final

from corecube.errors import ConfigError
from retrieval.engine.tunables import Tunables, tunable
from retrieval.text.traits import HINTS

NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,59}")
_MAX_TITLE: Final = 120
_MAX_TEMPLATE: Final = 500
_PLACEHOLDERS: Final = frozenset({"subject"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Section(Tunables):
    """A named retrieval policy. Raises ConfigError for values out of bounds and contradictions.

    `required` types are recovered when a pool has fewer than their quantity floor; `optional` and `never_recovered`
    types never are.
    """

    #: Small letters, digits and _, at most 60.
    name: str
    title: str
    #: The query; {subject} is the subject of the report.
    template: str
    complexity: int = tunable(
        10, low=1, high=100, unit="chunks", help="Chunks it asks for from three to ten documents.", at_most="cap"
    )
    cap: int = tunable(100, low=8, high=200, unit="chunks", help="Chunks it never asks for more than.", costs=True)
    keep: int = tunable(8, low=1, high=100, unit="chunks", help="Chunks that are kept after reranking.", at_most="cap")
    score_floor: float = tunable(
        0.0, low=0.0, high=1.0, unit="similarity", help="Minimum scaled similarity of a chunk to the query."
    )
    quality_floor: float = tunable(0.0, low=0.0, high=1.0, help="Minimum quality of a chunk.")
    #: The kind of content of its chunks; empty for any.
    hint: str = ""
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    never_recovered: tuple[str, ...] = ()
    #: Minimum number of chunks of a required type in the pool; 1 by default.
    quantity_floors: Mapping[str, int] = field(default_factory=dict)
    #: Minimum number of chunks of a required type after the final cut; 1 by default.
    survivor_floors: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise ConfigError for the first problem."""
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
        yield from self._texts()
        yield from self._types()
        yield from self._floors("quantity_floors", self.quantity_floors, "cap", self.cap)
        yield from self._floors("survivor_floors", self.survivor_floors, "keep", self.keep)

    def _texts(self) -> Iterator[tuple[str, str]]:
        if not NAME.fullmatch(self.name):
            yield "name", "must be small letters, digits and _, beginning with a letter, at most 60"
        if not 0 < len(self.title.strip()) <= _MAX_TITLE:
            yield "title", f"must have 1 to {_MAX_TITLE} characters"
        if problem := _template_problem(self.template):
            yield "template", problem
        if self.hint and self.hint not in HINTS:
            yield "hint", f"must be one of {', '.join(sorted(HINTS))}"

    def _types(self) -> Iterator[tuple[str, str]]:
        for name in ("required", "optional", "never_recovered"):
            types: tuple[str, ...] = getattr(self, name)
            if len(set(types)) < len(types):
                yield name, "names a source type twice"
        if both := sorted(set(self.required) & set(self.optional)):
            yield "optional", f"names what is required: {', '.join(both)}"
        if both := sorted(set(self.required) & set(self.never_recovered)):
            yield "never_recovered", f"names what is required: {', '.join(both)}"

    def _floors(self, name: str, floors: Mapping[str, int], bound: str, limit: int) -> Iterator[tuple[str, str]]:
        if others := sorted(set(floors) - set(self.required)):
            yield name, f"names what is not required: {', '.join(others)}"
        if any(floor < 1 for floor in floors.values()):
            yield name, "must be 1 or more"
        if sum(floors.values()) > limit:
            yield name, f"must not exceed {bound} together"


NUMBERS: Final = tuple(facts.name for facts in Section.declared())
TYPE_LISTS: Final = ("required", "optional", "never_recovered")
TYPE_FLOORS: Final = ("quantity_floors", "survivor_floors")
TEXTS: Final = ("name", "title", "template", "hint")
FIELDS: Final = tuple(item.name for item in fields(Section))


def _template_problem(template: str) -> str:
    if not 0 < len(template.strip()) <= _MAX_TEMPLATE:
        return f"must have 1 to {_MAX_TEMPLATE} characters"
    try:
        parts = list(Formatter().parse(template))
    except ValueError:
        return "has a brace without its other half"
    known = all(
        name is None or (name in _PLACEHOLDERS and not spec and not conversion) for _, name, spec, conversion in parts
    )
    return "" if known else "may hold no placeholder but {subject}"
