"""The section sets: a list for principals who may use them, their content for admins."""

from django.http import HttpRequest
from ninja import Router, Status

from corecube.access import Principal
from corecube.api import principal_of
from retrieval.api.evidence import section_set_out
from retrieval.api.evidence_schemas import SectionSetIn, SectionSetOut, SectionSetsOut
from retrieval.api.managed import managed_preset, may_manage_presets
from retrieval.api.presets import TunableOut
from retrieval.api.schemas import CHANGE_REFUSALS, REFUSALS
from retrieval.presets.consolidated.evidence.sections import Section
from retrieval.search import section_sets
from retrieval.search.evidence_runs import PRESET, require_preset

router = Router(tags=["evidence"])


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
