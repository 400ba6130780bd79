"""Changing a preset's configuration: admins edit one draft and promote it; what was live stays to be promoted again.

Every change is one transaction and one event of the audit log. Callers say what they looked at, so that nobody
overwrites or promotes what somebody else has changed meanwhile.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from django.db import IntegrityError, transaction
from django.utils import timezone

from corecube import audit
from corecube.models import User
from corecube.sanitise import storable
from retrieval.errors import UnknownVersionError, VersionConflictError
from retrieval.models import PresetVersion
from retrieval.presets.preset import Preset
from retrieval.search.configuration import SHIPPED

_DRAFT = PresetVersion.Status.DRAFT
_LIVE = PresetVersion.Status.LIVE


def save_draft(
    *, preset: Preset, values: Mapping[str, object], note: str, actor: User, replaces: str = ""
) -> PresetVersion:
    """Save the draft, of which only what differs from the defaults is kept, and return it.

    `replaces` is the fingerprint of the draft that was edited, empty where there was none; VersionConflictError is
    raised when there is another one by now, TunablesError for values that do not fit.
    """
    config, defaults = preset.defaults.with_values(values).values(), preset.defaults.values()
    changed = {name: value for name, value in config.items() if value != defaults[name]}
    with _one_change(preset) as versions:
        draft = _with_status(versions, _DRAFT)
        if replaces != (draft.fingerprint if draft else ""):
            raise VersionConflictError("The draft was changed by somebody else meanwhile. Look at it before you save.")
        if draft is None:
            number = versions[0].number + 1 if versions else SHIPPED + 1
            draft = PresetVersion(preset=preset.name, number=number, created_by=actor)
        draft.values, draft.note = changed, storable(note)
        draft.save()
        audit.record("preset.draft_saved", actor=actor, subject=preset.name, number=draft.number, values=changed)
    return draft


def discard_draft(*, preset: Preset, actor: User) -> None:
    """Delete the draft; raise UnknownVersionError where there is none."""
    with _one_change(preset) as versions:
        draft = _with_status(versions, _DRAFT)
        if draft is None:
            raise UnknownVersionError("This preset has no draft.")
        audit.record(
            "preset.draft_discarded", actor=actor, subject=preset.name, number=draft.number, values=draft.values
        )
        draft.delete()


def promote(
    *, preset: Preset, number: int, actor: User, live: int | None = None, fingerprint: str | None = None
) -> PresetVersion | None:
    """Make a draft or a retired version live and retire the one that was; return it, None for the shipped defaults.

    `number` 0 goes back to the shipped defaults. `live` is the version that the actor took for live, `fingerprint`
    that of the version as they saw it: VersionConflictError is raised when either is another one by now, or when the
    version is live already, UnknownVersionError for a number that the preset does not have.
    """
    with _one_change(preset) as versions:
        serving = _with_status(versions, _LIVE)
        chosen = _numbered(versions, number)
        _check_seen(chosen, serving, number=number, live=live, fingerprint=fingerprint)
        if serving is not None:
            serving.status = PresetVersion.Status.RETIRED
            serving.save(update_fields=["status"])
        if chosen is not None:
            chosen.status, chosen.promoted_at, chosen.promoted_by = _LIVE, timezone.now(), actor
            chosen.save(update_fields=["status", "promoted_at", "promoted_by"])
        audit.record(
            "preset.promoted",
            actor=actor,
            subject=preset.name,
            number=number,
            retired=_number(serving),
            values=chosen.values if chosen else {},
        )
    return chosen


def _check_seen(
    chosen: PresetVersion | None,
    serving: PresetVersion | None,
    *,
    number: int,
    live: int | None,
    fingerprint: str | None,
) -> None:
    """Raise VersionConflictError when a promotion was decided on something else than what there is."""
    serves = _number(serving)
    if number == serves:
        raise VersionConflictError(f"Version {number} is live already.")
    if live is not None and live != serves:
        raise VersionConflictError(f"Version {serves} is live by now, not {live}. Look at the change again.")
    if fingerprint is not None and fingerprint != (chosen.fingerprint if chosen else ""):
        raise VersionConflictError(f"Version {number} was changed by somebody else meanwhile. Look at it again.")


@contextmanager
def _one_change(preset: Preset) -> Iterator[list[PresetVersion]]:
    """Lock the preset's versions, newest first, for one transaction.

    Raises VersionConflictError when a version came into being meanwhile, which the lock cannot hold off.
    """
    try:
        with transaction.atomic():
            yield list(PresetVersion.objects.select_for_update().filter(preset=preset.name).order_by("-number"))
    except IntegrityError as error:
        raise VersionConflictError from error


def _with_status(versions: list[PresetVersion], status: str) -> PresetVersion | None:
    return next((version for version in versions if version.status == status), None)


def _numbered(versions: list[PresetVersion], number: int) -> PresetVersion | None:
    """Return the version with a number, None for the shipped defaults."""
    if number == SHIPPED:
        return None
    for version in versions:
        if version.number == number:
            return version
    raise UnknownVersionError(f"This preset has no version {number}.")


def _number(version: PresetVersion | None) -> int:
    return version.number if version else SHIPPED
