"""POST /api/v1/evidence."""

from django.http import HttpRequest
from ninja import Router

from corecube import rate_limit
from corecube.access import Principal
from corecube.api import principal_of
from retrieval.api.evidence_schemas import EvidenceIn, EvidenceOut
from retrieval.api.evidence_shape import evidence_out
from retrieval.api.schemas import REFUSALS
from retrieval.api.search import scope_request
from retrieval.models import SearchRecord
from retrieval.search.evidence_runs import Evidence, EvidenceRequest, asked_sections, gather, require_preset
from retrieval.search.section_sets import section_set_named

router = Router(tags=["evidence"])


@router.post("/evidence", response={200: EvidenceOut, **REFUSALS}, exclude_unset=True, summary="Gather evidence")
def gather_evidence(request: HttpRequest, body: EvidenceIn) -> EvidenceOut:
    """Find evidence for one section or all sections of a report, among what the key's user may see.

    Each section is a separate search and counts as one of the key's requests per minute.
    """
    wanted = EvidenceRequest(
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
    return evidence_out(evidence, request.build_absolute_uri, with_explanation=body.explain)


def gather_counted(request: EvidenceRequest, principal: Principal) -> Evidence:
    """Gather evidence; every section counts as a request of the principal's key. Raises as `gather` does."""
    require_preset(principal)
    if principal.key is not None:
        sections = asked_sections(section_set_named(request.section_set), request.section)
        # Authentication has counted the request itself.
        rate_limit.charge(principal.key, len(sections) - 1)
    return gather(request, principal=principal)
