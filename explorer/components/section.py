"""The section of a search: the picker, and what the search settled for it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from explorer import wording
from explorer.components.sections import SectionGroup, section_groups
from retrieval.presets.consolidated.evidence.depth import Health
from retrieval.presets.consolidated.evidence.section_state import SectionState
from retrieval.search.outcome import SearchOutcome

_HEALTH: Final[Mapping[Health, str]] = {
    Health.GOOD: "",
    Health.SPARSE: "few chunks, so more are requested",
    Health.DEGRADED: "recently degraded, so more are requested",
}


@dataclass(frozen=True, slots=True)
class Picker:
    """The sections to choose from, and the one that is chosen."""

    chosen: str
    groups: tuple[SectionGroup, ...]


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that was settled for a section."""

    label: str
    value: str
    help: str


@dataclass(frozen=True, slots=True)
class SectionStrip:
    """What a search settled for its section."""

    #: "Report: Overview"; empty for a plain question.
    label: str
    #: What was searched for.
    query: str
    facts: tuple[Fact, ...]


def picker(chosen: str) -> Picker:
    """Return the picker with a section chosen, or none."""
    return Picker(chosen, section_groups())


def section_strip(outcome: SearchOutcome) -> SectionStrip | None:
    """Return what a search settled for its section; None in presets without sections."""
    section = outcome.state.part(SectionState)
    if section is None or not section.top_k:
        return None
    ask = section.ask
    label = "" if ask.is_plain else f"{ask.section_set.title}: {ask.section.title}"
    return SectionStrip(label, outcome.state.query.text, tuple(_facts(section)))


def _facts(section: SectionState) -> Iterator[Fact]:
    policy = section.ask.section
    health = _HEALTH[section.health]
    searched = f"{wording.counted(section.chunks, 'chunk')} in {wording.counted(section.documents, 'document')}"
    yield Fact("Searches", f"{searched}{', ' if health else ''}{health}", "Chunks in scope, after filters.")
    yield Fact(
        "Requests",
        f"{section.top_k:,} of {section.fetched:,} read",
        "Chunks sent to the reranker, out of those read.",
    )
    yield Fact("Retains", f"{policy.keep:,}", "Chunks retained after reranking.")
    if section.grade is not None:
        yield Fact("Grade", str(section.grade), "Pool quality from A to F, by the similarity of its best chunks.")
    floors = f"similarity {section.score_floor:.2f}, quality {policy.quality_floor:.2f}"
    yield Fact("Floors", floors, "Chunks below a floor are dropped. A weak pool has lower floors.")
    if policy.required:
        yield Fact(
            "Requires", ", ".join(policy.required), "Source types that are searched separately if the pool lacks them."
        )
