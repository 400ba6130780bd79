"""The presets: a list for every user, their configurations for admins."""

from datetime import datetime
from typing import Annotated, Self

from django.http import HttpRequest
from ninja import Query, Router, Status
from pydantic import BaseModel, Field

from corecube.access import Principal
from corecube.api import principal_of
from corecube.database import first_or
from retrieval.admin import preset_versions
from retrieval.api.managed import managed_preset, may_manage_presets
from retrieval.api.schemas import CHANGE_REFUSALS, REFUSALS, Numbers, StrictBody, filled
from retrieval.engine.tunables import TunableFacts
from retrieval.errors import UnknownVersionError
from retrieval.evaluation import gates
from retrieval.models import PresetVersion
from retrieval.presets.catalog import PRESETS
from retrieval.presets.preset import Preset
from retrieval.search.configuration import SHIPPED, configuration_of, fitted
from retrieval.tasks.evaluation_runs import wake_worker_on_commit

router = Router(tags=["presets"])


class TunableOut(BaseModel):
    """A setting of a preset as declared, with its live value."""

    name: str
    default: float
    low: float
    high: float
    unit: str
    help: str
    costs: bool = Field(description="Costs time or memory: a request can only lower it.")
    value: float

    @classmethod
    def of(cls, facts: TunableFacts, default: float, value: float) -> Self:
        """Return the response for a setting with the preset's default."""
        return filled(cls, facts, default=default, value=value)


class PresetOut(BaseModel):
    """A preset; for admins also its live version and its settings."""

    name: str
    description: str
    version: int | None = Field(default=None, description="The live version; 0 for the shipped defaults. For admins.")
    tunables: list[TunableOut] | None = Field(default=None, description="For admins.")


class PresetsOut(BaseModel):
    """The presets that the principal may use."""

    presets: list[PresetOut]


class VersionOut(BaseModel):
    """A configuration of a preset."""

    number: int
    status: str = Field(description="draft, live or retired.")
    values: dict[str, float] = Field(description="Differences from the shipped defaults.")
    unfit: dict[str, str] = Field(description="Stored values that are invalid in this release; the defaults apply.")
    note: str
    fingerprint: str = Field(description="Changes with every edit.")
    created_at: datetime | None
    created_by: str | None
    promoted_at: datetime | None
    promoted_by: str | None


class VersionsOut(BaseModel):
    """A preset's versions, newest first. Without a live version the shipped defaults apply."""

    preset: str
    versions: list[VersionOut]


class DraftIn(StrictBody):
    """A draft's complete content: omitted settings have their defaults."""

    values: Numbers
    note: str = Field(default="", max_length=200, description="Summary and reason of the changes.")
    replaces: str = Field(default="", description="Fingerprint of the replaced draft; empty for a new one.")


class PromotionIn(StrictBody):
    """The version to promote."""

    number: int = Field(ge=0, le=2**31 - 1, description="The draft or a retired version; 0 for the shipped defaults.")
    live: int | None = Field(default=None, description="The live version you expect; refused if it is another one.")
    fingerprint: str | None = Field(default=None, description="The fingerprint you expect; refused if it has changed.")
    reason: str = Field(default="", max_length=500, description="Why it goes live although a gate is not passed.")


class RollbackIn(StrictBody):
    """What to roll back."""

    live: int | None = Field(default=None, description="The live version you expect; refused if it is another one.")


class GateCheckIn(StrictBody):
    """What to measure on the gates."""

    number: int = Field(ge=0, le=2**31 - 1, description="The draft or a retired version; 0 for the shipped defaults.")
    again: bool = Field(default=False, description="Also measure again what is measured.")


class GateResultOut(BaseModel):
    """What one gate says of a version."""

    question_set: str
    measure: str = Field(description="With its cutoff, such as nDCG@10.")
    max_loss: float = Field(description="The mean may fall by at most this.")
    verdict: str = Field(description="passed, below, unjudged, failed, measuring or unmeasured.")
    mean: float | None = Field(description="The version's mean less the live version's.")
    low: float | None = Field(description="The 95 % bootstrap interval of the mean.")
    high: float | None
    p_value: float | None = Field(description="Of a two-sided paired randomisation test.")
    queries: int
    better: int
    worse: int
    live_run: str | None = Field(description="The compared runs.")
    candidate_run: str | None


class GateResultsOut(BaseModel):
    """What the gates say of a version; without gates it is passed."""

    preset: str
    version: int
    passed: bool
    gates: list[GateResultOut]


class PromotedOut(BaseModel):
    """The live version."""

    preset: str
    version: int


@router.get("/presets", response={200: PresetsOut, **REFUSALS}, exclude_unset=True, summary="List presets")
def list_presets(request: HttpRequest) -> PresetsOut:
    """Return the presets that the principal may use; for admins with their settings and live values."""
    principal = principal_of(request)
    in_full = may_manage_presets(principal)
    return PresetsOut(
        presets=[_preset_out(it, in_full=in_full) for it in PRESETS.values() if principal.may_use(it.name)]
    )


@router.get("/presets/{name}/versions", response={200: VersionsOut, **CHANGE_REFUSALS}, summary="List versions")
def list_versions(request: HttpRequest, name: str) -> VersionsOut:
    """Return a preset's versions, newest first. For admins."""
    preset = managed_preset(principal_of(request), name)
    versions = PresetVersion.objects.filter(preset=preset.name).select_related("created_by", "promoted_by")
    return VersionsOut(preset=preset.name, versions=[_version(preset, it) for it in versions])


@router.put("/presets/{name}/draft", response={200: VersionOut, **CHANGE_REFUSALS}, summary="Save the draft")
def save_draft(request: HttpRequest, name: str, body: DraftIn) -> VersionOut:
    """Save the draft of a preset; searches do not use it until it is promoted. For admins."""
    principal = principal_of(request)
    preset = managed_preset(principal, name)
    draft = preset_versions.save_draft(
        preset=preset, values=body.values, note=body.note, actor=principal.user, replaces=body.replaces
    )
    return _version(preset, draft)


@router.delete("/presets/{name}/draft", response={204: None, **CHANGE_REFUSALS}, summary="Discard the draft")
def discard_draft(request: HttpRequest, name: str) -> Status[None]:
    """Delete the draft of a preset. For admins."""
    principal = principal_of(request)
    preset_versions.discard_draft(preset=managed_preset(principal, name), actor=principal.user)
    return Status(204, None)


@router.post("/presets/{name}/promote", response={200: PromotedOut, **CHANGE_REFUSALS}, summary="Promote a version")
def promote(request: HttpRequest, name: str, body: PromotionIn) -> PromotedOut:
    """Make the draft or a retired version live; every search uses it from then on. For admins.

    Refused with 409 and the code `gate_not_passed` where a gate is not passed, unless a reason is given.
    """
    principal = principal_of(request)
    preset = managed_preset(principal, name)
    preset_versions.promote(
        preset=preset,
        number=body.number,
        actor=principal.user,
        live=body.live,
        fingerprint=body.fingerprint,
        reason=body.reason,
    )
    return PromotedOut(preset=preset.name, version=body.number)


@router.post("/presets/{name}/rollback", response={200: PromotedOut, **CHANGE_REFUSALS}, summary="Roll back")
def roll_back(request: HttpRequest, name: str, body: RollbackIn) -> PromotedOut:
    """Make the version live again that the live one has replaced. For admins."""
    principal = principal_of(request)
    preset = managed_preset(principal, name)
    version = preset_versions.roll_back(preset=preset, actor=principal.user, live=body.live)
    return PromotedOut(preset=preset.name, version=version.number if version else SHIPPED)


@router.get("/presets/{name}/gate", response={200: GateResultsOut, **CHANGE_REFUSALS}, summary="Check the gates")
def check_gates(request: HttpRequest, name: str, number: Annotated[int, Query(ge=0, le=2**31 - 1)]) -> GateResultsOut:
    """Return what the gates say of a version, from stored runs. For admins."""
    principal = principal_of(request)
    return _gate_results(principal, managed_preset(principal, name), number)


@router.post("/presets/{name}/gate", response={202: GateResultsOut, **CHANGE_REFUSALS}, summary="Measure the gates")
def measure_gates(request: HttpRequest, name: str, body: GateCheckIn) -> Status[GateResultsOut]:
    """Queue the runs that the gates need; a worker measures them with the principal's access. For admins."""
    principal = principal_of(request)
    preset = managed_preset(principal, name)
    gates.queue_missing(preset, _stored(preset, body.number), principal, again=body.again)
    wake_worker_on_commit()
    return Status(202, _gate_results(principal, preset, body.number))


def _gate_results(principal: Principal, preset: Preset, number: int) -> GateResultsOut:
    results = gates.checked(preset, _stored(preset, number), principal)
    found = [GateResultOut(**it.as_json()) for it in results]
    return GateResultsOut(preset=preset.name, version=number, passed=gates.are_passed(results), gates=found)


def _stored(preset: Preset, number: int) -> PresetVersion | None:
    """Return a version, None for the shipped defaults; raise UnknownVersionError."""
    if number == SHIPPED:
        return None
    unknown = UnknownVersionError(f"This preset has no version {number}.")
    return first_or(unknown, PresetVersion.objects.filter(preset=preset.name, number=number))


def _preset_out(preset: Preset, *, in_full: bool) -> PresetOut:
    out = filled(PresetOut, preset)
    if in_full:
        live = configuration_of(preset)
        values, defaults = live.config.values(), preset.defaults.values()
        out.version = live.number
        out.tunables = [TunableOut.of(it, defaults[it.name], values[it.name]) for it in live.config.declared_below()]
    return out


def _version(preset: Preset, version: PresetVersion) -> VersionOut:
    _, unfit = fitted(preset, version.number, version.values)
    return filled(
        VersionOut,
        version,
        values={name: value for name, value in version.values.items() if name not in unfit},
        unfit=dict(unfit),
        created_by=version.created_by.username if version.created_by else None,
        promoted_by=version.promoted_by.username if version.promoted_by else None,
    )
