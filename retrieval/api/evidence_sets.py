"""The section sets: what there is for whoever may search with them, their content for admins."""

from django.http import HttpRequest
from ninja import Router, Status

from corecube.access import Principal
from corecube.api import principal_of
from retrieval.api import evidence_schemas, schemas
from retrieval.api.evidence_shape import section_bounds, section_set_out
from retrieval.api.managed import managed_preset, may_manage_presets
from retrieval.search import section_sets
from retrieval.search.evidence_runs import PRESET, require_preset

router = Router(tags=["evidence"])

_REFUSALS = {**schemas.REFUSALS, 409: schemas.ErrorOut}


@router.get(
    "/section-sets",
    response={200: evidence_schemas.SectionSetsOut, **schemas.REFUSALS},
    exclude_unset=True,
    summary="List section sets",
)
def list_section_sets(request: HttpRequest) -> evidence_schemas.SectionSetsOut:
    """Return the section sets with their sections; to an admin with everything written in them, and its bounds."""
    principal = principal_of(request)
    require_preset(principal)
    in_full = may_manage_presets(principal)
    out = evidence_schemas.SectionSetsOut(
        default=section_sets.DEFAULT_SECTION_SET,
        section_sets=[section_set_out(it, in_full=in_full) for it in section_sets.section_sets()],
    )
    if in_full:
        out.bounds = section_bounds()
    return out


@router.put(
    "/section-sets/{name}", response={200: evidence_schemas.SectionSetOut, **_REFUSALS}, summary="Save a section set"
)
def save_section_set(
    request: HttpRequest, name: str, body: evidence_schemas.SectionSetIn
) -> evidence_schemas.SectionSetOut:
    """Save a new section set, or another content of one that is there; searches use it from then on. For admins.

    A refusal names every value that does not fit, with its bounds.
    """
    principal = _managing(request)
    saved = section_sets.save_section_set({**body.values, "name": name}, actor=principal.user, replaces=body.replaces)
    return section_set_out(saved, in_full=True)


@router.delete("/section-sets/{name}", response={204: None, **_REFUSALS}, summary="Delete or reset a section set")
def delete_section_set(request: HttpRequest, name: str) -> Status[None]:
    """Delete a section set of the installation's own, or put a shipped one back to how it came. For admins."""
    principal = _managing(request)
    if section_sets.is_shipped(name):
        section_sets.reset_section_set(name, actor=principal.user)
    else:
        section_sets.delete_section_set(name, actor=principal.user)
    return Status(204, None)


def _managing(request: HttpRequest) -> Principal:
    """Return who may change section sets; raise NotPermittedError for anyone else."""
    principal = principal_of(request)
    managed_preset(principal, PRESET)
    return principal
