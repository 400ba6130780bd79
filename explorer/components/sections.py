"""Sections in the console: which there are, how an address names one, and what it asks for."""

from collections.abc import Iterator
from dataclasses import dataclass

from retrieval.errors import UnknownSectionError
from retrieval.presets.catalog import PRESETS
from retrieval.presets.consolidated.config import ConsolidatedConfig
from retrieval.presets.consolidated.evidence.section_state import SectionAsk
from retrieval.search.section_sets import section_named, section_set_named, section_sets


@dataclass(frozen=True, slots=True)
class SectionChoice:
    """A section that can be asked for."""

    #: How an address names it: "report/overview".
    value: str
    label: str


@dataclass(frozen=True, slots=True)
class SectionGroup:
    """The sections of one set."""

    heading: str
    choices: tuple[SectionChoice, ...]


def has_sections(preset: str) -> bool:
    """Return whether a preset gathers evidence for sections."""
    return preset in PRESETS and isinstance(PRESETS[preset].defaults, ConsolidatedConfig)


def section_groups() -> tuple[SectionGroup, ...]:
    """Return every section of every set, in the sets' order."""
    return tuple(_groups())


def _groups() -> Iterator[SectionGroup]:
    for found in section_sets():
        choices = tuple(SectionChoice(f"{found.name}/{it.name}", it.title) for it in found.sections)
        yield SectionGroup(found.title, choices)


def section_asked(value: str, subject: str) -> SectionAsk:
    """Return the section that an address names, about a subject. Raises UnknownSectionError."""
    set_name, _, name = value.partition("/")
    found = section_set_named(set_name)
    return SectionAsk(section_set=found, section=section_named(found, name), subject=subject)


def is_section(value: str) -> bool:
    """Return whether a section is there that an address names so."""
    try:
        section_asked(value, "")
    except UnknownSectionError:
        return False
    return True


def query_of(ask: SectionAsk) -> str:
    """Return what is searched for: the section's template about the subject."""
    return ask.section.query(ask.subject)


def section_label(value: str) -> str:
    """Return a section as people read it: "Report: Overview"; its name where it is not there any more."""
    try:
        ask = section_asked(value, "")
    except UnknownSectionError:
        return value
    return f"{ask.section_set.title}: {ask.section.title}"
