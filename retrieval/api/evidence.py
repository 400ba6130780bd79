"""Evidence for the sections of a report, and the section sets."""

from typing import Any
from uuid import UUID

from django.http import HttpRequest
from ninja import Router, Status
from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from corecube import rate_limit
from corecube.access import Principal
from corecube.api import principal_of
from retrieval.api import schemas, shape
from retrieval.api.managed import managed_preset, may_manage_presets
from retrieval.api.presets import TunableOut
from retrieval.api.schemas import CHANGE_REFUSALS, REFUSALS, StrictBody, filled
from retrieval.api.search import scope_request
from retrieval.engine.pipeline import Watch
from retrieval.presets.consolidated.evidence.recovery import is_beyond_filter, is_recovered
from retrieval.presets.consolidated.evidence.scoring import Provider
from retrieval.presets.consolidated.evidence.sections import Section, SectionSet
from retrieval.search import evidence_runs, section_sets
from retrieval.search.evidence_runs import MAX_SUBJECT, PRESET, require_preset
from retrieval.search.outcome import SearchOutcome
from retrieval.search.section_sets import DEFAULT_SECTION_SET, fingerprint, is_edited, is_shipped, section_set_named

router = Router(tags=["evidence"])
_MAX_NAME = 60
_EXAMPLE: JsonDict = {
    "section_set": "report",
    "section": "facts_and_figures",
    "subject": "the move to the new warehouse",
    "compartments": ["finance"],
    "budget_ms": 10_000,
}


class EvidenceIn(StrictBody):
    """A request for evidence."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    preset: str = Field(default=PRESET, max_length=_MAX_NAME, description="This preset or its reference version.")
    section_set: str = Field(default=DEFAULT_SECTION_SET, max_length=_MAX_NAME, description="A section set's name.")
    section: str = Field(default="", max_length=_MAX_NAME, description="One of its sections; empty for all, in order.")
    subject: str = Field(default="", max_length=MAX_SUBJECT, description="Subject of the report; may be empty.")
    compartments: list[str] = Field(
        default=[], max_length=100, description="Slugs of the compartments to search; empty means all visible ones."
    )
    scope: schemas.ScopeIn = Field(default_factory=schemas.ScopeIn)
    documents: list[UUID] = Field(
        default=[],
        max_length=1000,
        description="Only these documents. A section with fewer than 3 chunks in them is also searched in other"
        " documents; those hits are marked.",
    )
    budget_ms: int = Field(
        default=60_000,
        ge=50,
        le=600_000,
        description="Milliseconds for all sections together; each section also has the preset's deadline.",
    )
    explain: bool = Field(default=False, description="Adds the score breakdown of each hit, and what each stage did.")
    overrides: schemas.Overrides = Field(default_factory=dict)
    draft: bool = Field(default=False, description="For admins: runs with the preset's draft.")


class EvidenceHitOut(schemas.HitOut):
    """A hit of a section."""

    provider: str = Field(description='The last scorer: "cross_encoder" or "semantic_bm25"; empty for neither.')
    recovered: bool = Field(description="Whether an extra search for a missing source type found it.")
    beyond_filter: bool = Field(description="Whether it lies outside the requested documents.")


class CellOut(BaseModel):
    """One source type in one section's evidence."""

    presence: str = Field(
        description="For required types: found; recovered; thin (fewer hits than required); missing; or"
        " not_looked_for (the deadline passed first). Else optional or none."
    )
    count: int = Field(description="Hits of that type.")
    recovered: int = Field(description="How many of them an extra search for the missing type found.")


class EvidenceExplanation(schemas.Explanation):
    """What each stage did, with its events."""

    events: list[dict[str, Any]] = Field(description="Structured events in order: numbers and names, no text.")


class SectionEvidenceOut(BaseModel):
    """The evidence of a section."""

    section: str
    title: str
    trace_id: UUID | None = Field(description="Id of the stored search; null if the section was not searched.")
    query: str = Field(description="The query: the section's template with the subject.")
    code: str = Field(description="Code of why the section was not searched or failed; else empty.")
    problem: str = Field(description="The same as a sentence.")
    hits: list[EvidenceHitOut]
    cells: dict[str, CellOut] = Field(description="The section's row of the matrix, by source type.")
    degraded: list[str] = Field(description="Codes of fallbacks and early stops.")
    timings: schemas.Timings | None
    explain: EvidenceExplanation | None = None


class EvidenceOut(BaseModel):
    """Evidence for each section: a matrix of sections (rows) and source types (columns)."""

    id: UUID
    section_set: str
    subject: str
    source_types: list[str] = Field(description="The matrix's columns: the set's source types, then others found.")
    sections: list[SectionEvidenceOut]
    total_ms: float


class PolicyOut(BaseModel):
    """A section and its source types."""

    name: str
    title: str
    required: list[str] = Field(description="Required source types; an extra search looks for missing ones.")
    optional: list[str] = Field(description="Optional source types.")


class SectionSetOut(BaseModel):
    """A section set; for admins also its content."""

    name: str
    title: str
    shipped: bool = Field(description="Whether CoreCube includes it.")
    edited: bool = Field(description="Whether it differs from the shipped content.")
    source_types: list[str] = Field(description="In order of precedence.")
    sections: list[PolicyOut]
    fingerprint: str | None = Field(default=None, description="Changes with every edit. For admins.")
    values: dict[str, Any] | None = Field(default=None, description="The complete set as saved. For admins.")


class SectionSetsOut(BaseModel):
    """The section sets: first the shipped ones."""

    default: str = Field(description="The set of a request without `section_set`.")
    section_sets: list[SectionSetOut]
    bounds: list[TunableOut] | None = Field(default=None, description="The settings of a section. For admins.")


class SectionSetIn(StrictBody):
    """A section set's complete content."""

    values: dict[str, Any] = Field(
        description="The complete set: title, source_types, defaults and sections. Its name is in the URL."
    )
    replaces: str = Field(default="", max_length=40, description="Fingerprint of the edited set; empty for a new one.")


def _section(
    found: evidence_runs.SectionEvidence, subject: str, absolute: shape.Absolute, *, with_explanation: bool
) -> SectionEvidenceOut:
    outcome = found.outcome
    out = filled(
        SectionEvidenceOut,
        found,
        section=found.section.name,
        title=found.section.title,
        trace_id=outcome.id if outcome else None,
        query=found.section.query(subject),
        hits=_hits(outcome, absolute, with_ledger=with_explanation) if outcome else [],
        cells={name: filled(CellOut, cell) for name, cell in found.cells.items()},
        degraded=list(outcome.state.degraded) if outcome else [],
        timings=shape.timings(outcome) if outcome else None,
    )
    if outcome is not None and with_explanation:
        spans = shape.explanation(outcome).spans
        out.explain = EvidenceExplanation(spans=spans, events=[dict(it) for it in outcome.state.events])
    return out


def _hits(outcome: SearchOutcome, absolute: shape.Absolute, *, with_ledger: bool) -> list[EvidenceHitOut]:
    documents = shape.documents_of(outcome)
    plain = [
        shape.hit_out(*it, outcome, absolute, documents, with_ledger=with_ledger)
        for it in enumerate(outcome.hits, start=1)
    ]
    return [
        EvidenceHitOut(
            **out.model_dump(exclude_unset=True),
            provider="" if hit.provider == Provider.NONE else hit.provider,
            recovered=is_recovered(hit),
            beyond_filter=is_beyond_filter(hit),
        )
        for hit, out in zip(outcome.hits, plain, strict=True)
    ]


def section_set_out(section_set: SectionSet, *, in_full: bool) -> SectionSetOut:
    """Return the response for a section set, with its content if `in_full`."""
    out = filled(
        SectionSetOut,
        section_set,
        shipped=is_shipped(section_set.name),
        edited=is_edited(section_set),
        source_types=list(section_set.precedence),
        sections=[PolicyOut.model_validate(it, from_attributes=True) for it in section_set.sections],
    )
    if in_full:
        out.fingerprint, out.values = fingerprint(section_set), section_set.to_mapping()
    return out


@router.post("/evidence", response={200: EvidenceOut, **REFUSALS}, exclude_unset=True, summary="Gather evidence")
def gather_evidence(request: HttpRequest, body: EvidenceIn) -> EvidenceOut:
    """Find evidence for one section or all sections of a report, among what the key's user may see.

    Each section is a separate search and counts as one of the key's requests per minute.
    """
    wanted = evidence_runs.EvidenceRequest(
        preset=body.preset,
        section_set=body.section_set,
        section=body.section,
        subject=body.subject,
        narrowing=scope_request(body.scope),
        compartments=tuple(body.compartments),
        documents=frozenset(body.documents),
        budget_seconds=body.budget_ms / 1000,
        overrides=body.overrides,
        draft=body.draft,
    )
    evidence = gather_counted(wanted, principal_of(request))
    return filled(
        EvidenceOut,
        evidence,
        section_set=evidence.section_set.name,
        sections=[
            _section(found, evidence.subject, request.build_absolute_uri, with_explanation=body.explain)
            for found in evidence.sections
        ],
        total_ms=round(evidence.seconds * 1000, 3),
    )


def gather_counted(
    request: evidence_runs.EvidenceRequest, principal: Principal, watch: Watch | None = None
) -> evidence_runs.Evidence:
    """Gather evidence; every section counts as a request of the principal's key. Raises as `gather` does."""
    evidence_runs.require_preset(principal, request.preset)
    if principal.key is not None:
        sections = evidence_runs.asked_sections(section_set_named(request.section_set), request.section)
        # Authentication has counted the request itself.
        rate_limit.charge(principal.key, len(sections) - 1)
    return evidence_runs.gather(request, principal=principal, watch=watch)


@router.get(
    "/section-sets", response={200: SectionSetsOut, **REFUSALS}, exclude_unset=True, summary="List section sets"
)
def list_section_sets(request: HttpRequest) -> SectionSetsOut:
    """Return the section sets with their sections; for admins also their content and the bounds of its settings."""
    principal = principal_of(request)
    require_preset(principal)
    in_full = may_manage_presets(principal)
    out = SectionSetsOut(
        default=section_sets.DEFAULT_SECTION_SET,
        section_sets=[section_set_out(it, in_full=in_full) for it in section_sets.section_sets()],
    )
    if in_full:
        out.bounds = [TunableOut.of(facts, facts.default, facts.default) for facts in Section.declared()]
    return out


@router.put("/section-sets/{name}", response={200: SectionSetOut, **CHANGE_REFUSALS}, summary="Save a section set")
def save_section_set(request: HttpRequest, name: str, body: SectionSetIn) -> SectionSetOut:
    """Create or replace a section set; searches use it from then on. For admins.

    The error message names every invalid value with its bounds.
    """
    principal = _managing(request)
    saved = section_sets.save_section_set({**body.values, "name": name}, actor=principal.user, replaces=body.replaces)
    return section_set_out(saved, in_full=True)


@router.delete("/section-sets/{name}", response={204: None, **CHANGE_REFUSALS}, summary="Delete or reset a section set")
def delete_section_set(request: HttpRequest, name: str) -> Status[None]:
    """Delete a section set, or restore the shipped content of one that CoreCube includes. For admins."""
    principal = _managing(request)
    if section_sets.is_shipped(name):
        section_sets.reset_section_set(name, actor=principal.user)
    else:
        section_sets.delete_section_set(name, actor=principal.user)
    return Status(204, None)


def _managing(request: HttpRequest) -> Principal:
    principal = principal_of(request)
    managed_preset(principal, PRESET)
    return principal
