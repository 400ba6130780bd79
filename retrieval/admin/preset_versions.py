"""Preset versions: admins edit a draft and promote it; earlier live versions can be promoted again.

Every change is one transaction and one audit event. Callers pass the fingerprint of what they have seen, so that they
do not overwrite or promote another user's changes. A reference version has no versions but itself: a change raises
ReferenceVersionError.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from django.db import IntegrityError, transaction
from django.utils import timezone

from corecube import audit
from corecube.models import User
from corecube.sanitise import storable
from retrieval.errors import ReferenceVersionError, UnknownVersionError, VersionConflictError
from retrieval.models import PresetVersion
from retrieval.presets.preset import Preset
from retrieval.search.configuration import SHIPPED

_DRAFT = PresetVersion.Status.DRAFT
_LIVE = PresetVersion.Status.LIVE


def save_draft(
    *, preset: Preset, values: Mapping[str, object], note: str, actor: User, replaces: str = ""
) -> PresetVersion:
    """Save the draft with its differences from the defaults, and return it.

    `replaces` is the fingerprint of the edited draft, empty for none. Raises VersionConflictError if the draft has
    changed, TunablesError for invalid values.
    """
    config, defaults = preset.defaults.with_values(values).values(), preset.defaults.values()
    changed = {name: value for name, value in config.items() if value != defaults[name]}
    with _one_change(preset) as versions:
        draft = _with_status(versions, _DRAFT)
        if replaces != (draft.fingerprint if draft else ""):
            raise VersionConflictError("Another user has changed the draft. Check the changes before you save.")
        if draft is None:
            number = versions[0].number + 1 if versions else SHIPPED + 1
            draft = PresetVersion(preset=preset.name, number=number, created_by=actor)
        draft.values, draft.note = changed, storable(note)
        draft.save()
        audit.record("preset.draft_saved", actor=actor, subject=preset.name, number=draft.number, values=changed)
    return draft


def discard_draft(*, preset: Preset, actor: User) -> None:
    """Delete the draft; raise UnknownVersionError if there is none."""
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
    """Make a draft or a retired version live and retire the previous one; return it, None for the shipped defaults.

    `number` 0 restores the shipped defaults. `live` and `fingerprint` are the live version and the fingerprint that
    the actor has seen. Raises VersionConflictError if either has changed or if the version is live already,
    UnknownVersionError for an unknown number.
    """
    with _one_change(preset) as versions:
        previous = _with_status(versions, _LIVE)
        chosen = next((version for version in versions if version.number == number), None)
        if chosen is None and number != SHIPPED:
            raise UnknownVersionError(f"This preset has no version {number}.")
        live_number = previous.number if previous else SHIPPED
        if number == live_number:
            raise VersionConflictError(f"Version {number} is live already.")
        if live is not None and live != live_number:
            raise VersionConflictError(f"Version {live_number} is live now, not {live}. Check the change again.")
        if fingerprint is not None and fingerprint != (chosen.fingerprint if chosen else ""):
            raise VersionConflictError(f"Another user has changed version {number}. Check it again.")
        if previous is not None:
            previous.status = PresetVersion.Status.RETIRED
            previous.save(update_fields=["status"])
        if chosen is not None:
            chosen.status, chosen.promoted_at, chosen.promoted_by = _LIVE, timezone.now(), actor
            chosen.save(update_fields=["status", "promoted_at", "promoted_by"])
        audit.record(
            "preset.promoted",
            actor=actor,
            subject=preset.name,
            number=number,
            retired=live_number,
            values=chosen.values if chosen else {},
        )
    return chosen


@contextmanager
def _one_change(preset: Preset) -> Iterator[list[PresetVersion]]:
    """Lock the preset's versions, newest first, for one transaction.

    Raises VersionConflictError if another transaction adds a version, which the lock cannot prevent, and
    ReferenceVersionError.
    """
    if preset.lines:
        raise ReferenceVersionError
    try:
        with transaction.atomic():
            yield list(PresetVersion.objects.select_for_update().filter(preset=preset.name).order_by("-number"))
    except IntegrityError as error:
        raise VersionConflictError from error


def _with_status(versions: list[PresetVersion], status: str) -> PresetVersion | None:
    return next((version for version in versions if version.status == status), None)
