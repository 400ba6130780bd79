"""The evidence tool: the sections of a report with their best passages and missing source types."""

from typing import Final

from pydantic import BaseModel, Field

from corecube.access import Principal
from retrieval.agents.schemas import ResultOut, result_out
from retrieval.api.evidence import gather_counted
from retrieval.api.request_body import StrictBody
from retrieval.api.shape import Absolute
from retrieval.models import SearchRecord
from retrieval.presets.consolidated.evidence.cells import Presence
from retrieval.search.evidence_runs import MAX_SUBJECT, EvidenceRequest, SectionEvidence
from retrieval.search.section_sets import DEFAULT_SECTION_SET

_MAX_NAME: Final = 60
#: Passages per section of a complete set.
_MAX_PASSAGES: Final = 4
#: Seconds for all sections together.
_BUDGET_SECONDS: Final = 60.0


class EvidenceToolIn(StrictBody):
    """A request for evidence."""

    subject: str = Field(min_length=1, max_length=MAX_SUBJECT, description="Subject of the report.")
    section_set: str = Field(default=DEFAULT_SECTION_SET, max_length=_MAX_NAME, description="Kind of report.")
    section: str = Field(
        default="", max_length=_MAX_NAME, description="One of its sections, with all its passages; empty for all."
    )
    compartments: list[str] = Field(default=[], max_length=100, description="Slugs of compartments; empty for all.")


class SectionToolOut(BaseModel):
    """The evidence of a section."""

    section: str
    title: str
    results: list[ResultOut]
    missing: list[str] = Field(description="Required source types without passages.")
    thin: list[str] = Field(description="Required source types with too few passages.")
    not_looked_for: list[str] = Field(description="Required source types that could not be searched.")
    problem: str = Field(description="Why the section was not searched; empty if it was.")
    trace_id: str | None


class EvidenceToolOut(BaseModel):
    """Evidence for each section, in the report's order."""

    sections: list[SectionToolOut]


def gathered(read: EvidenceToolIn, principal: Principal, absolute: Absolute) -> EvidenceToolOut:
    """Gather evidence for an agent; raise as `gather` does."""
    request = EvidenceRequest(
        section_set=read.section_set,
        section=read.section,
        subject=read.subject,
        compartments=tuple(read.compartments),
        budget_seconds=_BUDGET_SECONDS,
        surface=SearchRecord.Surface.AGENT,
    )
    evidence = gather_counted(request, principal)
    limit = None if read.section else _MAX_PASSAGES
    return EvidenceToolOut(sections=[_section(found, absolute, limit) for found in evidence.sections])


def _section(found: SectionEvidence, absolute: Absolute, limit: int | None) -> SectionToolOut:
    outcome = found.outcome
    return SectionToolOut(
        section=found.section.name,
        title=found.section.title,
        results=[result_out(hit, outcome, absolute) for hit in outcome.hits[:limit]] if outcome else [],
        missing=_types(found, Presence.MISSING),
        thin=_types(found, Presence.THIN),
        not_looked_for=_types(found, Presence.NOT_LOOKED_FOR),
        problem=found.problem,
        trace_id=str(outcome.id) if outcome else None,
    )


def _types(found: SectionEvidence, presence: Presence) -> list[str]:
    return [name for name, cell in found.cells.items() if cell.presence is presence]
