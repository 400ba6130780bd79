"""Section sets: the list, the table of a set's sections, and the fields of a section."""

from collections.abc import Iterator
from dataclasses import dataclass

from django.forms import BoundField

from explorer.components.preset_numbers import FieldRow, field_row, figure
from explorer.pages.evidence.forms import SectionForm, SectionSetForm
from retrieval.presets.consolidated.evidence.sections import Section, SectionSet
from retrieval.search.section_sets import is_edited, is_shipped


@dataclass(frozen=True, slots=True)
class SetRow:
    """A section set in the list."""

    name: str
    title: str
    sections: int
    source_types: tuple[str, ...]
    #: "default", "edited" or "custom".
    state: str
    tone: str
    is_shipped: bool
    is_edited: bool


@dataclass(frozen=True, slots=True)
class _SectionLine:
    section: Section
    #: The query about the test subject.
    query: str
    floors: str
    #: "excel (3, 1 retained)".
    required: tuple[str, ...]
    #: In addition to the set's defaults.
    never_recovered: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _TypeFields:
    name: str
    role: BoundField
    quantity: BoundField
    survivors: BoundField

    @property
    def errors(self) -> list[str]:
        return [str(error) for field in (self.role, self.quantity, self.survivors) for error in field.errors]


def set_row(found: SectionSet) -> SetRow:
    """Return a set's row."""
    shipped, edited = is_shipped(found.name), is_edited(found)
    state = ("edited" if edited else "default") if shipped else "custom"
    tone = {"edited": "warn", "custom": "good"}.get(state, "")
    return SetRow(found.name, found.title, len(found.sections), found.precedence, state, tone, shipped, edited)


def section_lines(found: SectionSet, subject: str) -> Iterator[_SectionLine]:
    """Yield the sections of a set, each with its query about a subject."""
    for section in found.sections:
        yield _SectionLine(
            section=section,
            query=section.query(subject or "{subject}"),
            floors=f"{figure(section.score_floor)} / {figure(section.quality_floor)}",
            required=tuple(_required(section)),
            never_recovered=tuple(it for it in section.never_recovered if it not in found.defaults.never_recovered),
        )


def _required(section: Section) -> Iterator[str]:
    for it in section.required:
        survivors = section.survivor_floors.get(it)
        retained = f", {survivors:,} retained" if survivors else ""
        yield f"{it} ({section.quantity_floor(it):,}{retained})"


def number_rows(form: SectionForm | SectionSetForm, section_set: SectionSet) -> Iterator[FieldRow]:
    """Yield the fields of a section's settings, each with its bounds and default.

    The default of a section comes from its set, that of a set is the shipped one.
    """
    defaults = section_set.defaults.numbers if isinstance(form, SectionForm) else {}
    for facts in Section.declared():
        yield field_row(form[facts.name], facts, defaults.get(facts.name, facts.default))


def type_fields(form: SectionForm) -> Iterator[_TypeFields]:
    """Yield the fields of each source type, in the set's order."""
    for it in form.source_types:
        yield _TypeFields(it, form[f"role.{it}"], form[f"quantity_floors.{it}"], form[f"survivor_floors.{it}"])
