"""Cutting to the section's number of hits, with required types protected."""

from dataclasses import dataclass
from typing import ClassVar

from retrieval.engine.about import About
from retrieval.engine.state import DropReason, Note, SearchState
from retrieval.presets.consolidated.evidence.order import PROTECTED, cut_with_protection
from retrieval.presets.consolidated.evidence.recovery import is_recovered
from retrieval.presets.consolidated.evidence.section_state import SectionStage, SectionState
from retrieval.presets.consolidated.stages.sources import SourceRecoveryConfig


@dataclass(frozen=True, slots=True)
class Protect(SectionStage, name="protect", needs={"hits", "facts", "order", "section"}):
    """Keep the first hits, as many as the section wants, plus recovered chunks and required types."""

    config: SourceRecoveryConfig

    about: ClassVar[About] = About(
        "protected",
        "Protects recovered chunks, and a minimum of each required type, from the cut after reranking.",
        drops=(DropReason.RERANK_CUT,),
        notes={"protected": "required types retained"},
    )

    def in_section(self, section: SectionState, state: SearchState) -> SearchState:
        """Return the state with the hits that stay; protected ones raise the number of requested hits."""
        ask = section.ask
        kept, drops = cut_with_protection(
            state.hits,
            keep=ask.section.keep,
            max_protected=self.config.max_protected,
            survivor_floors={name: ask.section.survivor_floor(name) for name in ask.section.required},
            type_of=ask.type_of,
        )
        protected = tuple(hit for hit in kept if PROTECTED in hit.signals)
        recovered = sum(map(is_recovered, protected))
        note = Note(
            "protected",
            f"{len(protected)} chunks of required types are retained besides the best {len(kept) - len(protected)}.",
        )
        event = {
            "event": "protected",
            "keep": ask.section.keep,
            "kept": len(kept),
            "recovered": recovered,
            "survivors": len(protected) - recovered,
            "cut": len(drops),
        }
        top_k = max(state.top_k, len(kept)) if protected else state.top_k
        notes = (note,) if protected else ()
        return state.with_more(hits=kept, top_k=top_k, drops=drops, notes=notes, events=(event,))
