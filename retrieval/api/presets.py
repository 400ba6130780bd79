"""The presets: what there is for everybody, their configurations for admins."""

from django.http import HttpRequest
from ninja import Router, Status

from corecube.api import principal_of
from corecube.models import User
from retrieval.admin import preset_versions
from retrieval.api import preset_schemas, schemas
from retrieval.api.managed import managed_preset, may_manage_presets
from retrieval.models import PresetVersion
from retrieval.presets.catalog import PRESETS
from retrieval.presets.preset import Preset
from retrieval.search.configuration import configuration_of, fitted

router = Router(tags=["presets"])

_REFUSALS = {**schemas.REFUSALS, 409: schemas.ErrorOut}


@router.get(
    "/presets",
    response={200: preset_schemas.PresetsOut, **schemas.REFUSALS},
    exclude_unset=True,
    summary="List presets",
)
def list_presets(request: HttpRequest) -> preset_schemas.PresetsOut:
    """Return the presets that the principal may use; to an admin with their tunables and live values."""
    principal = principal_of(request)
    show = _described if may_manage_presets(principal) else _named
    return preset_schemas.PresetsOut(presets=[show(it) for it in PRESETS.values() if principal.may_use(it.name)])


@router.get(
    "/presets/{name}/versions", response={200: preset_schemas.VersionsOut, **_REFUSALS}, summary="List versions"
)
def list_versions(request: HttpRequest, name: str) -> preset_schemas.VersionsOut:
    """Return a preset's versions, newest first. For admins."""
    preset = managed_preset(principal_of(request), name)
    versions = PresetVersion.objects.filter(preset=preset.name).select_related("created_by", "promoted_by")
    return preset_schemas.VersionsOut(preset=preset.name, versions=[_version(preset, it) for it in versions])


@router.put("/presets/{name}/draft", response={200: preset_schemas.VersionOut, **_REFUSALS}, summary="Save the draft")
def save_draft(request: HttpRequest, name: str, body: preset_schemas.DraftIn) -> preset_schemas.VersionOut:
    """Save the draft of a preset, which serves nobody until it is promoted. For admins."""
    principal = principal_of(request)
    preset = managed_preset(principal, name)
    draft = preset_versions.save_draft(
        preset=preset, values=body.values, note=body.note, actor=principal.user, replaces=body.replaces
    )
    return _version(preset, draft)


@router.delete("/presets/{name}/draft", response={204: None, **_REFUSALS}, summary="Discard the draft")
def discard_draft(request: HttpRequest, name: str) -> Status[None]:
    """Delete the draft of a preset. For admins."""
    principal = principal_of(request)
    preset_versions.discard_draft(preset=managed_preset(principal, name), actor=principal.user)
    return Status(204, None)


@router.post(
    "/presets/{name}/promote", response={200: preset_schemas.PromotedOut, **_REFUSALS}, summary="Promote a version"
)
def promote(request: HttpRequest, name: str, body: preset_schemas.PromotionIn) -> preset_schemas.PromotedOut:
    """Make the draft live, or a retired version again; every search runs with it from then on. For admins."""
    principal = principal_of(request)
    preset = managed_preset(principal, name)
    preset_versions.promote(
        preset=preset, number=body.number, actor=principal.user, live=body.live, fingerprint=body.fingerprint
    )
    return preset_schemas.PromotedOut(preset=preset.name, version=body.number)


def _named(preset: Preset) -> preset_schemas.PresetOut:
    return preset_schemas.PresetOut(name=preset.name, description=preset.description)


def _described(preset: Preset) -> preset_schemas.PresetOut:
    live = configuration_of(preset)
    values = live.config.values()
    described = _named(preset)
    described.version = live.number
    described.tunables = [
        preset_schemas.TunableOut(
            name=facts.name,
            default=facts.default,
            low=facts.low,
            high=facts.high,
            unit=facts.unit,
            help=facts.help,
            costs=facts.costs,
            value=values[facts.name],
        )
        for facts in live.config.declared_below()
    ]
    return described


def _version(preset: Preset, version: PresetVersion) -> preset_schemas.VersionOut:
    _, unfit = fitted(preset, version.number, version.values)
    return preset_schemas.VersionOut(
        number=version.number,
        status=version.status,
        values={name: value for name, value in version.values.items() if name not in unfit},
        unfit=dict(unfit),
        note=version.note,
        fingerprint=version.fingerprint,
        created_at=version.created_at,
        created_by=_name(version.created_by),
        promoted_at=version.promoted_at,
        promoted_by=_name(version.promoted_by),
    )


def _name(user: User | None) -> str | None:
    return user.username if user else None
