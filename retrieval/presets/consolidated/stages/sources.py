"""Recovering required source types that the pool lacks."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

from corecube.errors import CoreCubeError
from corecube.scope import AccessScope
from retrieval.engine.about import About, StageGroup
from retrieval.engine.admission import Admission
from retrieval.engine.admission_ladder import Purpose
from retrieval.engine.pipeline import Stage
from retrieval.engine.state import Note, RequestFilter, SearchState
from retrieval.engine.tunables import Tunables, costly
from retrieval.engine.types import Ranking
from retrieval.index import recovery
from retrieval.index.store import VectorIndex
from retrieval.presets.consolidated.evidence.recovery import (
    Diagnosis,
    Missing,
    SourceResult,
    merged,
    missing_types,
    wanted,
)
from retrieval.presets.consolidated.evidence.section_state import SectionStage, SectionState
from retrieval.presets.consolidated.recovery_tiers import mark_beyond_filter


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRecoveryConfig(Tunables, label="Source recovery"):
    """Searches for required source types that are missing from the pool."""

    ceiling_seconds: float = costly(
        12.0, low=0.1, high=60.0, unit="s", help="Time limit for one search for a missing source type."
    )
    max_protected: int = costly(
        8, low=0, high=100, unit="chunks", help="Maximum number of recovered chunks that are restored after the cut."
    )


@dataclass(frozen=True, slots=True)
class RecoverSources(SectionStage, name="sources", needs={"hits", "facts", "section", "terms", "scope"}):
    """Search each compartment for a missing required type, and add the hits.

    Each search is one statement that filters by the documents' type: no reranker, no floor, no retry. It uses the
    filter of the pool (the request's, or what the cascade left of it) without the section's filters.
    """

    config: SourceRecoveryConfig
    index: VectorIndex
    completing: tuple[Stage, ...]  #: Complete the hits and check their access again.
    admission: Admission  #: Has separate slots for recovery, so that waiting searches do not delay it.

    about: ClassVar[About] = About(
        "sources",
        "Searches for each source type that the section requires and the pool lacks.",
        group=StageGroup.FIND,
        section="sources",
        notes={
            "source_recovered": "source type recovered",
            "source_missing": "source type missing",
            "source_not_looked_for": "source type not searched",
        },
        badges=frozenset({"source_recovered", "source_missing"}),
    )

    def in_section(self, section: SectionState, state: SearchState) -> SearchState:
        """Return the state with recovered hits behind the pool."""
        counts = Counter(map(section.ask.type_of, state.hits))
        for missing in missing_types(section.ask.section, counts):
            state = self._recovered(missing, state, section)
        return state

    def _recovered(self, missing: Missing, state: SearchState, section: SectionState) -> SearchState:
        limit = wanted(missing, section.ask.section, limit=self.config.max_protected)
        connections: dict[str, list[int]] = defaultdict(list)
        for it in state.scope.included:
            connections[it.connection.compartment].append(it.connection.id)
        compartments = [(name, state.scope.only(ids, reveal=False)) for name, ids in sorted(connections.items())]
        looks = [self._look(missing, limit, name, scope, state, section) for name, scope in compartments]
        results = tuple(result for _, result in looks)
        pooled = {hit.chunk_id for hit in state.hits}
        # Hits with a cosine come first.
        found = sorted(
            (hit for hits, _ in looks for hit in hits), key=lambda hit: ("cosine" not in hit.signals, -hit.score)
        )
        new: Ranking = tuple(hit for hit in found if hit.chunk_id not in pooled)[:limit]
        error = ""
        if new:
            reading = replace(state, hits=new, filter=_searched(state, section), prefetch={})
            try:
                for stage in self.completing:
                    reading = stage(reading)
                new = mark_beyond_filter(reading.hits, state, section)
            except CoreCubeError as problem:
                new, error = (), type(problem).__name__
        hits = merged(state.hits, new)
        note = _note(missing, results, added=len(hits) - len(state.hits), error=error)
        return state.with_more(hits=hits, notes=(note,), events=(it.event() for it in results))

    def _look(
        self,
        missing: Missing,
        limit: int,
        compartment: str,
        scope: AccessScope,
        state: SearchState,
        section: SectionState,
    ) -> tuple[Ranking, SourceResult]:
        clock, request_filter = state.deadline.clock, _searched(state, section)
        started = clock()
        until = started + min(self.config.ceiling_seconds, state.deadline.leg_seconds)
        # On a busy server a type that is present in small numbers has less priority than an absent one.
        purpose = Purpose.RECOVERY if missing.is_absent else Purpose.DIVERSITY

        def probe() -> Ranking:
            with self.admission.query(purpose, budget_seconds=until - clock()):
                return recovery.of_source_types(
                    section.ask.section_set.stored_as(missing.source_type),
                    vector=state.vector,
                    index=self.index,
                    terms=state.terms.terms,
                    scope=scope,
                    request_filter=request_filter,
                    depth=limit + missing.found,
                    timeout_seconds=until - clock(),
                )

        hits: Ranking = ()
        diagnosis, error = Diagnosis.FAILED, ""
        try:
            hits, diagnosis = section.ask.diagnoses.look(
                compartment, missing.source_type, probe, wait_seconds=until - clock(), kept=request_filter
            )
        except CoreCubeError as problem:
            error = type(problem).__name__
        result = SourceResult(
            source_type=missing.source_type,
            connections=tuple(sorted(scope.connection_ids)),
            found=len(hits),
            diagnosis=diagnosis,
            seconds=clock() - started,
            error=error,
        )
        return hits, result


def _searched(state: SearchState, section: SectionState) -> RequestFilter:
    requested = section.request_filter
    return replace(state.filter, hint=requested.hint, min_quality=requested.min_quality)


def _note(missing: Missing, results: Iterable[SourceResult], *, added: int, error: str) -> Note:
    name, lacks = missing.source_type, missing.floor - missing.found
    if added:
        return Note("source_recovered", f"{name}: the pool lacked {lacks}; {added} chunks were recovered.")
    if error or any(it.diagnosis in {Diagnosis.FAILED, Diagnosis.STILL_LOOKING} for it in results):
        text = f"{name}: required, the pool lacks {lacks}, and the search for it timed out or failed."
        return Note("source_not_looked_for", text, degraded=True)
    return Note("source_missing", f"{name}: required, the pool lacks {lacks}, and nothing more of it is in scope.")
