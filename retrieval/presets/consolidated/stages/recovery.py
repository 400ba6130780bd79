"""The recovery cascade for an empty pool."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import random
from time import sleep
from typing import ClassVar

from retrieval.encoders.cosine_scale import UNSCALED, CosineScale
from retrieval.engine.about import About, StageGroup
from retrieval.engine.admission import Admission
from retrieval.engine.admission_ladder import Purpose
from retrieval.engine.pipeline import Stage
from retrieval.engine.state import DropReason, Note, SearchState
from retrieval.engine.types import Ranking
from retrieval.presets.consolidated.evidence import cascade
from retrieval.presets.consolidated.evidence.recovery import is_beyond_filter
from retrieval.presets.consolidated.evidence.section_state import SectionStage, SectionState
from retrieval.presets.consolidated.recovery_tiers import RecoveryTiers, filter_of, mark_beyond_filter


@dataclass(frozen=True, slots=True)
class Recover(SectionStage, name="recovery", needs={"hits", "section", "terms", "scope"}):
    """Search again tier by tier with fewer filters of the request; the scope never changes."""

    config: cascade.CascadeConfig
    tiers: RecoveryTiers
    cut: Stage  #: Cuts the result to the section's depth.
    admission: Admission  #: Has separate slots for recovery, so that waiting searches do not delay it.
    scale: CosineScale = UNSCALED
    wait: Callable[[float], None] = sleep
    draw: Callable[[], float] = random

    about: ClassVar[About] = About(
        "recovered",
        "Searches again tier by tier if the pool is empty; the scope never changes.",
        group=StageGroup.FIND,
        drops=(DropReason.SOURCE_QUOTA, DropReason.OUTSIDE_WINDOW),
        notes={
            "recovered_pool": "recovered",
            "recovery_out_of_time": "recovery timed out",
            "fallback_exhausted": "recovery found nothing",
            "recovery_skipped": "recovery skipped",
        },
        badges=frozenset({"fallback_exhausted"}),
    )

    def only(self, leg: str) -> "Recover":
        """Return the same with only the leg of this name."""
        return replace(self, tiers=self.tiers.only(leg))

    def in_section(self, section: SectionState, state: SearchState) -> SearchState:
        """Return the state with the hits of the first tier that pass the gate, and that tier's filter.

        A pool with hits is unchanged. With an empty scope nothing is tried, and a note says so.
        """
        if state.hits:
            return state
        if not state.terms.corpus_size:
            note = Note(cascade.EXHAUSTED, "Nothing is in scope, so recovery had nothing to search.")
            return replace(state, notes=(*state.notes, note), events=(*state.events, *cascade.Recovered().events))
        # A leg that timed out may be why the pool is empty.
        has_timed_out = any(code.endswith("_timeout") for code in state.degraded)
        if has_timed_out and self.admission.skips_recovery():
            text = "Nothing was found in time, and too many connections are busy for a recovery."
            return state.noted(Note("recovery_skipped", text, degraded=True))
        recovered = self._cascade(state, section).run()
        state = replace(state, events=(*state.events, *recovered.events))
        if recovered.tier is None:
            return state.noted(_nothing(recovered))
        hits = mark_beyond_filter(recovered.hits, state, section)
        beyond = sum(map(is_beyond_filter, hits))
        more = f", {beyond} of them outside the request's filter" if beyond else ""
        tier = str(recovered.tier).replace("_", " ")
        text = f"Nothing was found at first; recovered {len(hits)} chunks by the tier {tier}{more}."
        note = Note("recovered_pool", text, degraded=True)
        found = replace(state, hits=hits, access_checked=True, notes=(*state.notes, note))
        return self.cut(replace(found, filter=filter_of(recovered.tier, section)))

    def _cascade(self, state: SearchState, section: SectionState) -> cascade.Cascade:
        policy, deadline = section.ask.section, state.deadline

        def search(tier: cascade.Tier) -> Ranking:
            with self.admission.query(Purpose.RECOVERY, budget_seconds=deadline.leg_seconds):
                return self.tiers.found(tier, state, section)

        return cascade.Cascade(
            search=search,
            gate=cascade.QualityGate.of(
                quality_floor=policy.quality_floor, score_floor=policy.score_floor, config=self.config, scale=self.scale
            ),
            config=self.config,
            world=cascade.CascadeWorld(
                clock=deadline.clock, sleep=self.wait, draw=self.draw, remaining_seconds=lambda: deadline.leg_seconds
            ),
            has_documents=bool(section.request_filter.documents),
            has_structure=bool(section.headings),
        )


def _nothing(recovered: cascade.Recovered) -> Note:
    tried = len(recovered.results)
    if recovered.is_cut_short:
        return Note("recovery_out_of_time", f"Recovery timed out after {tried} tiers.", degraded=True)
    failed = any(it.error for it in recovered.results)
    return Note(cascade.EXHAUSTED, f"No evidence in scope: {tried} recovery tiers found none.", failed)
