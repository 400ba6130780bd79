"""The coverage of source types in a section's evidence."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from retrieval.engine.state import Span
from retrieval.engine.types import Ranking
from retrieval.presets.consolidated.evidence.cascade import EXHAUSTED, TIER_RESULT
from retrieval.presets.consolidated.evidence.recovery import SOURCE_RESULT, Diagnosis, is_recovered
from retrieval.presets.consolidated.evidence.sections import Section, SectionSet

_STAGE_B: Final = "sources"  #: The stage that recovers missing source types.
_CONCLUSIVE: Final = frozenset({Diagnosis.ABSENT, Diagnosis.KNOWN_ABSENT})


class Presence(StrEnum):
    """The coverage of a source type in a section."""

    FOUND = "found"  #: Required, with enough chunks.
    RECOVERED = "recovered"  #: Required, with chunks that were recovered.
    THIN = "thin"  #: Required, with fewer chunks than the section needs.
    MISSING = "missing"  #: Required, searched for and not found.
    NOT_LOOKED_FOR = "not_looked_for"  #: Required, not found, and the search for it timed out or failed.
    OPTIONAL = "optional"  #: Not required, present.
    NONE = "none"  #: Not required, absent.


@dataclass(frozen=True, slots=True)
class Cell:
    """One source type in one section's evidence."""

    presence: Presence
    count: int = 0  #: Hits of the type, and how many of them were recovered.
    recovered: int = 0


def cells_of(section: Section, section_set: SectionSet, hits: Ranking, known: Collection[str]) -> dict[str, Cell]:
    """Return the coverage of every source type in a section: those of the set in order, then other found ones.

    `known` are the required types that are certainly absent if they were not found.
    """
    found = Counter(section_set.canonical(hit.chunk.source_type) for hit in hits)
    recovered = Counter(section_set.canonical(hit.chunk.source_type) for hit in hits if is_recovered(hit))

    def presence(name: str) -> Presence:
        if name not in section.required:
            return Presence.OPTIONAL if found[name] else Presence.NONE
        if not found[name]:
            return Presence.MISSING if name in known else Presence.NOT_LOOKED_FOR
        # The quantity floor applies to the pool; the final hits cannot exceed the section's limit.
        if found[name] < min(section.quantity_floor(name), section.keep):
            return Presence.THIN
        return Presence.RECOVERED if recovered[name] else Presence.FOUND

    names = dict.fromkeys((*section_set.precedence, *sorted(found)))
    return {name: Cell(presence(name), found[name], recovered[name]) for name in names}


def looked_for(section: Section, trace: Iterable[Span], events: Iterable[Mapping[str, object]]) -> frozenset[str]:
    """Return the required types that are certainly absent if they were not found, according to a search's trace.

    Those are the types without a failed recovery search; for an empty pool all, if every tier of the cascade ran.
    """
    happened = tuple(events)
    if any(
        span.stage == _STAGE_B
        and span.hits_in
        and not any(note.code.startswith("timed_out_in_") for note in span.notes)
        for span in trace
    ):
        probes = [event for event in happened if event.get("event") == SOURCE_RESULT]
        unknown = {it.get("source_type") for it in probes if it.get("diagnosis") not in _CONCLUSIVE}
        return frozenset(section.required) - {str(name) for name in unknown}
    is_exhausted = any(event.get("event") == EXHAUSTED for event in happened)
    failed = any(event.get("event") == TIER_RESULT and event.get("error") for event in happened)
    return frozenset(section.required) if is_exhausted and not failed else frozenset()
