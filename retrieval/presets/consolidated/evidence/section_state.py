"""The state of a search for a section."""

from dataclasses import dataclass, field
from typing import Final

from retrieval.engine.about import BaseStage
from retrieval.engine.state import RequestFilter, SearchState
from retrieval.engine.types import Hit
from retrieval.index.types import RoutedRange
from retrieval.presets.consolidated.evidence.density import TightenHint, TightenSkip
from retrieval.presets.consolidated.evidence.depth import Grade, Health
from retrieval.presets.consolidated.evidence.recovery import Diagnoses
from retrieval.presets.consolidated.evidence.sections import Section, SectionSet

PLAIN: Final = "question"
#: The hint of a pool without floors, such as a recovered one.
UNDECIDED: Final = TightenHint(skip=TightenSkip.INPUTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionAsk:
    """The request for a section of a set."""

    section_set: SectionSet
    section: Section
    subject: str = ""  #: The subject of the report; the query is made of it and the section's template.
    seconds: float | None = None  #: Time limit in seconds, waiting included; None for the preset's deadline.
    #: Absent source types found by the other sections of the run.
    diagnoses: Diagnoses = field(default_factory=Diagnoses, compare=False, repr=False)

    @property
    def name(self) -> str:
        """The section with its set: "property_memo/financial_analysis"."""
        return f"{self.section_set.name}/{self.section.name}"

    @property
    def is_plain(self) -> bool:
        """Whether it is the policy of a plain question."""
        return self.section_set.name == PLAIN

    def type_of(self, hit: Hit) -> str:
        """Return the canonical source type of a completed hit."""
        return self.section_set.canonical(hit.chunk.source_type)


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionState:
    """The section's state between stages."""

    ask: SectionAsk
    #: The request's filter, without the section's.
    request_filter: RequestFilter = field(default_factory=RequestFilter)
    #: Documents and chunks within the request's filter, counted up to the limit that makes a difference.
    documents: int = 0
    chunks: int = 0
    health: Health = Health.GOOD
    top_k: int = 0  #: Chunks for the reranker, and chunks fetched to select them from.
    fetched: int = 0
    headings: tuple[RoutedRange, ...] = ()  #: Ranges of documents with matching headings; empty without any.
    grade: Grade | None = None
    score_floor: float = 0.0  #: The effective score floor, relaxed by the grade.
    #: Where the pool can be cut before reranking, decided by the unfiltered primary pool.
    hint: TightenHint = UNDECIDED


class SectionStage(BaseStage):
    """A stage that works on a section, and leaves the state of a search without one as it is."""

    __slots__ = ()

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state as `in_section` does, unchanged without a section."""
        section = state.part(SectionState)
        return state if section is None else self.in_section(section, state)

    def in_section(self, section: SectionState, state: SearchState) -> SearchState:
        """Return the changed state of a search for a section."""
        raise NotImplementedError
