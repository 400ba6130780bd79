"""The tool that gathers evidence: a report's sections, each with its best passages and what it lacks."""

from typing import Final

from pydantic import BaseModel, Field

from corecube.access import Principal
from retrieval.agents.schemas import ResultOut
from retrieval.agents.snippets import result_out
from retrieval.api.evidence import gather_counted
from retrieval.api.request_body import StrictBody
from retrieval.api.shape import Absolute
from retrieval.models import SearchRecord
from retrieval.presets.consolidated.evidence.cells import Presence
from retrieval.search.evidence_runs import MAX_SUBJECT, EvidenceRequest, SectionEvidence
from retrieval.search.section_sets import DEFAULT_SECTION_SET

_NAME: Final = 60
#: Passages of each section, where a whole set is asked for.
_MAX_OF_EACH: Final = 4
#: Seconds for all sections together.
_BUDGET_SECONDS: Final = 60.0


class EvidenceToolIn(StrictBody):
    """What evidence is asked for."""

    subject: str = Field(min_length=1, max_length=MAX_SUBJECT, description="What the report is about.")
    section_set: str = Field(default=DEFAULT_SECTION_SET, max_length=_NAME, description="Which kind of report.")
    section: str = Field(
        default="", max_length=_NAME, description="One of its sections, with all its passages; empty for all sections."
    )
    compartments: list[str] = Field(default=[], max_length=100, description="Slugs of those to search; empty for all.")


class SectionToolOut(BaseModel):
    """What was found for a section."""

    section: str
    title: str
    results: list[ResultOut]
    missing: list[str] = Field(description="Source types that the section needs and that are not there.")
    thin: list[str] = Field(description="Source types of which it needs more than there is.")
    not_looked_for: list[str] = Field(description="Source types that it needs and that could not be looked for.")
    problem: str = Field(description="Why nothing was searched; empty where something was.")
    trace_id: str | None


class EvidenceToolOut(BaseModel):
    """Evidence for each section, in the report's order."""

    sections: list[SectionToolOut]


def gathered(read: EvidenceToolIn, principal: Principal, absolute: Absolute) -> EvidenceToolOut:
    """Gather evidence for an agent; raises what `gather` does."""
    request = EvidenceRequest(
        section_set=read.section_set,
        section=read.section,
        subject=read.subject,
        compartments=tuple(read.compartments),
        budget_seconds=_BUDGET_SECONDS,
        surface=SearchRecord.Surface.AGENT,
    )
    evidence = gather_counted(request, principal)
    limit = None if read.section else _MAX_OF_EACH
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
