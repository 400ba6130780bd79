"""Evidence for the sections of a report, and the section sets."""

from django.http import HttpRequest
from ninja import Router, Status

from corecube import rate_limit
from corecube.access import Principal
from corecube.api import principal_of
from retrieval.api import evidence_schemas as schemas
from retrieval.api import shape
from retrieval.api.evidence_schemas import EvidenceIn, EvidenceOut, SectionSetIn, SectionSetOut, SectionSetsOut
from retrieval.api.managed import managed_preset, may_manage_presets
from retrieval.api.presets import TunableOut
from retrieval.api.schemas import CHANGE_REFUSALS, REFUSALS, filled
from retrieval.api.search import scope_request
from retrieval.engine.types import Hit
from retrieval.models import SearchRecord
from retrieval.presets.consolidated.evidence.recovery import is_beyond_filter, is_recovered
from retrieval.presets.consolidated.evidence.scoring import Provider
from retrieval.presets.consolidated.evidence.sections import Section, SectionSet
from retrieval.search import evidence_runs, section_sets
from retrieval.search.evidence_runs import PRESET, require_preset
from retrieval.search.outcome import SearchOutcome
from retrieval.search.section_sets import fingerprint, is_edited, is_shipped, section_set_named

router = Router(tags=["evidence"])


def _section(
    found: evidence_runs.SectionEvidence, subject: str, absolute: shape.Absolute, *, with_explanation: bool
) -> schemas.SectionEvidenceOut:
    outcome = found.outcome
    out = filled(
        schemas.SectionEvidenceOut,
        found,
        section=found.section.name,
        title=found.section.title,
        trace_id=outcome.id if outcome else None,
        query=found.section.query(subject),
        hits=[_hit(*it, outcome, absolute, with_ledger=with_explanation) for it in enumerate(outcome.hits, start=1)]
        if outcome
        else [],
        cells={name: filled(schemas.CellOut, cell) for name, cell in found.cells.items()},
        degraded=list(outcome.state.degraded) if outcome else [],
        timings=shape.timings(outcome) if outcome else None,
    )
    if outcome is not None and with_explanation:
        spans = shape.explanation(outcome).spans
        out.explain = schemas.EvidenceExplanation(spans=spans, events=[dict(it) for it in outcome.state.events])
    return out


def _hit(
    rank: int, hit: Hit, outcome: SearchOutcome, absolute: shape.Absolute, *, with_ledger: bool
) -> schemas.EvidenceHitOut:
    plain = shape.hit_out(rank, hit, outcome, absolute, with_ledger=with_ledger)
    return schemas.EvidenceHitOut(
        **plain.model_dump(exclude_unset=True),
        provider="" if hit.provider == Provider.NONE else hit.provider,
        recovered=is_recovered(hit),
        beyond_filter=is_beyond_filter(hit),
    )


def section_set_out(section_set: SectionSet, *, in_full: bool) -> schemas.SectionSetOut:
    """Return the response for a section set, with its content if `in_full`."""
    out = filled(
        schemas.SectionSetOut,
        section_set,
        shipped=is_shipped(section_set.name),
        edited=is_edited(section_set),
        source_types=list(section_set.precedence),
        sections=[schemas.PolicyOut.model_validate(it, from_attributes=True) for it in section_set.sections],
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
        section_set=body.section_set,
        section=body.section,
        subject=body.subject,
        narrowing=scope_request(body.scope),
        compartments=tuple(body.compartments),
        documents=frozenset(body.documents),
        budget_seconds=body.budget_ms / 1000,
        overrides=body.overrides,
        draft=body.draft,
        surface=SearchRecord.Surface.API,
    )
    evidence = gather_counted(wanted, principal_of(request))
    return filled(
        schemas.EvidenceOut,
        evidence,
        section_set=evidence.section_set.name,
        sections=[
            _section(found, evidence.subject, request.build_absolute_uri, with_explanation=body.explain)
            for found in evidence.sections
        ],
        total_ms=round(evidence.seconds * 1000, 3),
    )


def gather_counted(request: evidence_runs.EvidenceRequest, principal: Principal) -> evidence_runs.Evidence:
    """Gather evidence; every section counts as a request of the principal's key. Raises as `gather` does."""
    evidence_runs.require_preset(principal)
    if principal.key is not None:
        sections = evidence_runs.asked_sections(section_set_named(request.section_set), request.section)
        # Authentication has counted the request itself.
        rate_limit.charge(principal.key, len(sections) - 1)
    return evidence_runs.gather(request, principal=principal)


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
        out.bounds = [TunableOut.of(facts, facts.default) for facts in Section.declared()]
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
