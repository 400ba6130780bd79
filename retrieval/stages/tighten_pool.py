"""The density-adaptive floor."""

from dataclasses import dataclass, replace
from typing import ClassVar, Final

from retrieval.encoders.breaker import BreakerState
from retrieval.evidence.config import DensityConfig
from retrieval.evidence.density import TightenHint, tighten, tighten_hint
from retrieval.evidence.rerank_figures import RerankFigures
from retrieval.evidence.rerank_guard import RerankGuard
from retrieval.evidence.section_state import SectionState
from retrieval.evidence.sections import Section
from retrieval.types import Note, SearchState

_UNDECIDED: Final = TightenHint()


@dataclass(frozen=True, slots=True)
class TightenPool:
    """Cut a dense pool's tail off at a cliff of its cosines, before reranking."""

    config: DensityConfig
    #: None without a cross-encoder: then nothing is cut.
    guard: RerankGuard | None
    figures: RerankFigures

    name: ClassVar[str] = "tighten"
    needs: ClassVar[frozenset[str]] = frozenset({"hits", "facts", "section"})
    gives: ClassVar[frozenset[str]] = frozenset()
    optional: ClassVar[bool] = False

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state without what lies behind the cliff; its event tells of every search why it was cut or not.

        The breaker is looked at when the cut is decided, and again when it is made: another search may have opened it.
        """
        section = state.section
        if section is None:
            return state
        hint = section.hint if section.hint != _UNDECIDED else self._hint(section)
        ask = section.ask
        done = tighten(
            state.hits,
            hint,
            keep=ask.section.keep,
            breaker=self._breaker,
            type_of=ask.type_of,
            least_of=_least_of(ask.section),
        )
        self.figures.tightened(ask.name, is_applied=done.is_applied)
        note = Note("tightened", f"{len(done.drops)} chunks behind a cliff at cosine {done.floor or 0:.2f} left out.")
        return replace(
            state,
            hits=done.hits,
            section=replace(section, hint=hint),
            drops=(*state.drops, *done.drops),
            notes=(*state.notes, note) if done.is_applied else state.notes,
            events=(*state.events, {"event": "tightened", **done.telemetry}),
        )

    @property
    def _breaker(self) -> BreakerState | None:
        return None if self.guard is None else self.guard.breaker.state

    def _hint(self, section: SectionState) -> TightenHint:
        return tighten_hint(
            section.cosines,
            grade=section.grade,
            static_floor=section.score_floor,
            keep=section.ask.section.keep,
            breaker=self._breaker,
            config=self.config,
        )


def _least_of(section: Section) -> dict[str, int]:
    """Return how many chunks of each required type the cut must leave, as far as there are so many."""
    return {name: max(section.quantity_floor(name), section.survivor_floors.get(name, 0)) for name in section.required}
