"""The density-adaptive floor."""

from dataclasses import dataclass
from typing import ClassVar

from retrieval.encoders.cosine_scale import UNSCALED, CosineScale
from retrieval.engine.about import About
from retrieval.engine.state import DropReason, Note, SearchState
from retrieval.presets.consolidated.evidence.density import tighten
from retrieval.presets.consolidated.evidence.rerank_guard import RerankFigures, RerankGuard
from retrieval.presets.consolidated.evidence.section_state import SectionStage, SectionState


@dataclass(frozen=True, slots=True)
class TightenPool(SectionStage, name="tighten", needs={"hits", "facts", "section"}):
    """Cut off a dense pool's tail at a cliff of its cosines, before reranking."""

    guard: RerankGuard | None  #: None without a cross-encoder: then nothing is cut off.
    figures: RerankFigures
    scale: CosineScale = UNSCALED

    about: ClassVar[About] = About(
        "tightened",
        "Cuts off the end of a dense pool at the first cliff in similarity, before reranking.",
        drops=(DropReason.BELOW_FLOOR,),
        notes={"tightened": "tail cut off"},
    )

    def in_section(self, section: SectionState, state: SearchState) -> SearchState:
        """Return the state without the hits behind the cliff; an event records why the pool was cut or not.

        The floors decided the cut; the breaker is checked again, since another search may have opened it.
        """
        ask = section.ask
        done = tighten(
            state.hits,
            section.hint,
            keep=ask.section.keep,
            breaker=None if self.guard is None else self.guard.breaker.state,
            type_of=ask.type_of,
            minimum_of={
                name: max(ask.section.quantity_floor(name), ask.section.survivor_floor(name))
                for name in ask.section.required
            },
            scale=self.scale,
        )
        self.figures.tightened(ask.name, is_applied=done.is_applied)
        note = Note(
            "tightened",
            f"{len(done.drops)} chunks below a cliff at scaled similarity {done.floor or 0:.2f} were dropped.",
        )
        event = {"event": "tightened", **done.telemetry}
        notes = (note,) if done.is_applied else ()
        return state.with_more(hits=done.hits, drops=done.drops, notes=notes, events=(event,))
