"""What a search knows of the section that it gathers evidence for."""

from dataclasses import dataclass, field
from typing import Final

from retrieval.engine.state import RequestFilter
from retrieval.engine.types import Hit
from retrieval.index.types import RoutedRange
from retrieval.presets.consolidated.evidence.density import TightenHint, TightenSkip
from retrieval.presets.consolidated.evidence.depth import Health
from retrieval.presets.consolidated.evidence.grades import Grade
from retrieval.presets.consolidated.evidence.recovery import Diagnoses
from retrieval.presets.consolidated.evidence.section_set import SectionSet
from retrieval.presets.consolidated.evidence.sections import Section

#: The name of the set whose only section is a plain question's policy.
PLAIN: Final = "question"
#: The hint of a pool that no floors saw, such as one that recovery found.
UNDECIDED: Final = TightenHint(skip=TightenSkip.INPUTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionAsk:
    """A section of a set, as it is asked for."""

    section_set: SectionSet
    section: Section
    #: What the report is about; the query was made of it and the section's template.
    subject: str = ""
    #: Seconds that it may take, waiting for its turn included; None for the preset's own deadline.
    seconds: float | None = None
    #: What the other sections of the same run know of source types that are not there.
    diagnoses: Diagnoses = field(default_factory=Diagnoses, compare=False, repr=False)

    @property
    def name(self) -> str:
        """The section with its set: "property_memo/financial_analysis"."""
        return f"{self.section_set.name}/{self.section.name}"

    @property
    def is_plain(self) -> bool:
        """Whether it is the policy of a plain question, which belongs to no report."""
        return self.section_set.name == PLAIN

    def type_of(self, hit: Hit) -> str:
        """Return the canonical source type of a completed hit."""
        return self.section_set.canonical(hit.chunk.source_type)


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionState:
    """What the stages found out so far."""

    ask: SectionAsk
    #: What the request itself left of the scope, before the section's own filters.
    request_filter: RequestFilter = field(default_factory=RequestFilter)
    #: Documents and chunks of the scope that the request's filter leaves, counted as far as it makes a difference.
    documents: int = 0
    chunks: int = 0
    health: Health = Health.GOOD
    #: Chunks that go to the reranker, and that are read so that they can be chosen.
    top_k: int = 0
    fetched: int = 0
    #: Where structural routing expects the answer, by document; empty where it did not run or found nothing.
    headings: tuple[RoutedRange, ...] = ()
    grade: Grade | None = None
    #: The score floor in force, relaxed by the grade.
    score_floor: float = 0.0
    #: Where the pool may be cut before reranking, decided by the primary pool as it was found.
    hint: TightenHint = UNDECIDED
