"""Setting up the section."""

from dataclasses import dataclass, replace
from typing import ClassVar, Final

from retrieval.engine.about import About, BaseStage, StageGroup
from retrieval.engine.state import Note, RequestFilter, SearchState
from retrieval.engine.tunables import Tunables, costly, fraction, tunable
from retrieval.errors import SearchTimeoutError
from retrieval.index.section_counts import ScopeCounts, failing_compartments, scope_counts
from retrieval.presets.consolidated.evidence.depth import (
    DepthConfig,
    Health,
    adaptive_top_k,
    document_factor,
    health_factor,
    health_of,
    over_fetched,
)
from retrieval.presets.consolidated.evidence.section_reading import shipped
from retrieval.presets.consolidated.evidence.section_state import PLAIN, SectionAsk, SectionState
from retrieval.presets.consolidated.evidence.sections import Section, SectionSet

_COUNTING_SHARE: Final = 0.2  #: Share of the remaining time that each count may take; the search works without them.


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionConfig(Tunables, label="Questions without a section"):
    """Defaults for questions without a section."""

    complexity: int = tunable(
        10,
        low=1,
        high=100,
        unit="chunks",
        help="Chunks requested for a question without a section. With a reranker, more are better: 20.",
        at_most="cap",
    )
    cap: int = costly(
        60, low=8, high=200, unit="chunks", help="Maximum number of chunks for a question without a section."
    )
    score_floor: float = fraction(0.18, unit="similarity", help="Minimum scaled similarity of a chunk to the query.")
    quality_floor: float = fraction(0.25, help="Minimum quality of a chunk.")


@dataclass(frozen=True, slots=True)
class SetUpSection(BaseStage, name="setup", needs={"terms", "scope"}, gives={"section"}):
    """Decide how many chunks the section needs, and add its filters to the request's."""

    question: QuestionConfig
    depth: DepthConfig
    written: SectionSet | None = None  #: Its sections replace those of the same set and name; None replaces none.

    about: ClassVar[About] = About(
        "section",
        "Decides how many chunks the section needs, and adds the section's filters to those of the request.",
        group=StageGroup.QUESTION,
        unit="chunks requested",
        left=lambda state: section.top_k if (section := state.part(SectionState)) else None,
        notes={"setup_timeout": "document count timed out"},
    )

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state with its section; a plain question gets a default policy.

        If counting times out, a medium number of documents in good health is assumed.
        """
        given = state.part(SectionState)
        ask = self._as_written(given.ask) if given else question_ask(self.question, keep=state.top_k)
        requested = given.request_filter if given else state.filter
        notes: tuple[Note, ...] = ()
        try:
            counts, health = self._counted(state, requested)
        except SearchTimeoutError:
            counts, health = ScopeCounts(self.depth.some_documents), Health.GOOD
            text = "Counting the scope timed out; a medium number of documents is assumed."
            notes = (Note("setup_timeout", text, degraded=True),)
        policy, documents = ask.section, counts.documents
        top_k = adaptive_top_k(policy.complexity, cap=policy.cap, documents=documents, config=self.depth, health=health)
        section = SectionState(
            ask=ask,
            request_filter=requested,
            documents=documents,
            chunks=counts.chunks.total(),
            health=health,
            top_k=top_k,
            fetched=over_fetched(top_k, cap=policy.cap, config=self.depth),
            score_floor=policy.score_floor,
        )
        return state.with_more(
            parts=state.parts_with(section),
            filter=narrowed_by(policy, state.filter),
            top_k=policy.keep,
            notes=(*notes, self._note(section, is_admin=state.is_admin)),
            events=(_event(section, is_admin=state.is_admin),),
        )

    def _as_written(self, ask: SectionAsk) -> SectionAsk:
        if self.written is None or self.written.name != ask.section_set.name:
            return ask
        section = self.written.section(ask.section.name)
        return ask if section is None else replace(ask, section_set=self.written, section=section)

    def _counted(self, state: SearchState, requested: RequestFilter) -> tuple[ScopeCounts, Health]:
        depth, scope = self.depth, state.scope
        if not scope.connection_ids:
            return ScopeCounts(0), Health.GOOD
        counts = scope_counts(
            scope,
            requested,
            max_documents=depth.some_documents,
            sparse_below=depth.sparse_below,
            timeout_seconds=_COUNTING_SHARE * state.deadline.leg_seconds,
        )
        failing = failing_compartments(
            scope, now=state.now, timeout_seconds=_COUNTING_SHARE * state.deadline.leg_seconds
        )
        healths = {
            health_of(chunks, is_failing=name in failing, config=depth) for name, chunks in counts.chunks.items()
        }
        # Degraded if any compartment is, sparse if all are.
        if Health.DEGRADED in healths:
            return counts, Health.DEGRADED
        return counts, Health.SPARSE if healths == {Health.SPARSE} else Health.GOOD

    def _note(self, section: SectionState, *, is_admin: bool) -> Note:
        """Return "Requests 28 chunks (base 28, 5 documents x 1, good x 1, cap 60), reads 42.".

        The number of documents is disclosed up to the limit that makes a difference. Only admins see that searches of a
        compartment fail, since those are other people's.
        """
        policy, depth, documents = section.ask.section, self.depth, section.documents
        limit = depth.some_documents
        shown = f"more than {limit}" if documents > limit else str(documents)
        parts = [
            f"base {policy.complexity}",
            f"{shown} documents x {document_factor(documents, depth):g}",
            f"cap {policy.cap}",
        ]
        if _shows_health(section, is_admin):
            parts.insert(2, f"{section.health} x {health_factor(section.health, depth):g}")
        return Note("setup", f"Requests {section.top_k} chunks ({', '.join(parts)}), reads {section.fetched}.")


def question_ask(config: QuestionConfig, *, keep: int) -> SectionAsk:
    """Return the policy of a plain question that wants `keep` hits: it requests at least as many."""
    complexity = max(config.complexity, keep)
    section = Section(
        name=PLAIN,
        title="Question",
        template="{subject}",
        complexity=complexity,
        cap=max(config.cap, complexity),
        keep=keep,
        score_floor=config.score_floor,
        quality_floor=config.quality_floor,
    )
    types = shipped("report").source_types
    section_set = SectionSet(name=PLAIN, title="Question", source_types=types, sections=(section,))
    return SectionAsk(section_set=section_set, section=section)


def narrowed_by(section: Section, kept: RequestFilter) -> RequestFilter:
    """Return a request's filter, with the section's hint if it has none, and the higher of both minimum qualities."""
    floor = max(kept.min_quality, section.quality_floor)
    return replace(kept, hint=kept.hint or section.hint, min_quality=floor)


def _shows_health(section: SectionState, is_admin: bool) -> bool:  # noqa: FBT001
    return is_admin or section.health is not Health.DEGRADED


def _event(section: SectionState, *, is_admin: bool) -> dict[str, object]:
    return {
        "event": "section_setup",
        "section": section.ask.name,
        "documents": section.documents,
        "chunks": section.chunks,
        "health": str(section.health) if _shows_health(section, is_admin) else "",
        "top_k": section.top_k,
        "fetched": section.fetched,
        "keep": section.ask.section.keep,
    }
