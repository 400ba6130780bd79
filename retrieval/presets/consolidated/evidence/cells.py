"""What became of each source type in a section's evidence."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from retrieval.engine.state import Span
from retrieval.engine.types import Ranking
from retrieval.presets.consolidated.evidence.cascade import EXHAUSTED, TIER_RESULT
from retrieval.presets.consolidated.evidence.recovery import SOURCE_RESULT, Diagnosis, is_recovered
from retrieval.presets.consolidated.evidence.section_set import SectionSet
from retrieval.presets.consolidated.evidence.sections import Section

#: The stage that looks for types that a pool lacks.
_STAGE_B: Final = "sources"
_CONCLUSIVE: Final = frozenset({Diagnosis.ABSENT, Diagnosis.KNOWN_ABSENT})


class Presence(StrEnum):
    """What became of a source type in a section."""

    #: Required, and there is enough of it.
    FOUND = "found"
    #: Required, and Stage B found what the pool lacked.
    RECOVERED = "recovered"
    #: Required, and there is less of it than the section needs.
    THIN = "thin"
    #: Required, looked for, and not there.
    MISSING = "missing"
    #: Required, not there, and nobody could look for it: the time was up, or the store failed.
    NOT_LOOKED_FOR = "not_looked_for"
    #: Not required; it is there.
    OPTIONAL = "optional"
    #: Not required, and not there.
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Cell:
    """One source type in one section's evidence."""

    presence: Presence
    #: Hits of that type, and how many of them Stage B added.
    count: int = 0
    recovered: int = 0


def cells_of(section: Section, section_set: SectionSet, hits: Ranking, known: Collection[str]) -> dict[str, Cell]:
    """Return what became of every source type in a section: the set's in their order, then others that were found.

    `known` are the required types of which somebody can say that they are not there, where they are not.
    """
    found = Counter(section_set.canonical(hit.chunk.source_type) for hit in hits)
    recovered = Counter(section_set.canonical(hit.chunk.source_type) for hit in hits if is_recovered(hit))
    names = dict.fromkeys((*section_set.precedence, *sorted(found)))
    return {
        name: Cell(_presence(name, section, found[name], recovered[name], known), found[name], recovered[name])
        for name in names
    }


def _presence(name: str, section: Section, found: int, recovered: int, known: Collection[str]) -> Presence:
    if name not in section.required:
        return Presence.OPTIONAL if found else Presence.NONE
    if not found:
        return Presence.MISSING if name in known else Presence.NOT_LOOKED_FOR
    # The quantity floor is the pool's; no more can be asked of what is kept than is kept.
    if found < min(section.quantity_floor(name), section.keep):
        return Presence.THIN
    return Presence.RECOVERED if recovered else Presence.FOUND


def looked_for(section: Section, trace: Iterable[Span], events: Iterable[Mapping[str, object]]) -> frozenset[str]:
    """Return the required types that are known not to be there where they are not, as a search's trace tells.

    Those are the ones that no probe of Stage B failed for, where it ran; of an empty pool, all where every tier of the
    cascade looked.
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
