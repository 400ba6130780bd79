"""Preset versions: admins edit a draft and promote it; earlier live versions can be promoted again.

Every change is one transaction and one audit event. Callers pass the fingerprint of what they have seen, so that they
do not overwrite or promote another user's changes. A reference version has no versions but itself: a change raises
ReferenceVersionError.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from django.db import IntegrityError, transaction
from django.utils import timezone

from corecube import audit
from corecube.access import Principal
from corecube.errors import ConflictError
from corecube.models import User
from corecube.sanitise import storable
from retrieval.errors import GateError, ReferenceVersionError, UnknownVersionError, VersionConflictError
from retrieval.evaluation import gates, sweeps
from retrieval.models import EvaluationRun, PresetVersion, Sweep
from retrieval.presets.catalog import preset_named
from retrieval.presets.preset import Preset
from retrieval.ranking.measures import Objective
from retrieval.search.configuration import SHIPPED

_DRAFT = PresetVersion.Status.DRAFT
_LIVE = PresetVersion.Status.LIVE
_MAX_REASON_LENGTH: Final = 500
_MAX_NOTE_LENGTH: Final = 200


def save_draft(
    *, preset: Preset, values: Mapping[str, object], note: str, actor: User, replaces: str = ""
) -> PresetVersion:
    """Save the draft with its differences from the defaults, and return it.

    `replaces` is the fingerprint of the edited draft, empty for none. Raises VersionConflictError if the draft has
    changed, TunablesError for invalid values.
    """
    changed = preset.changes(preset.defaults.with_values(values))
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


def draft_of_best(sweep: Sweep, *, actor: User, replaces: str = "") -> PresetVersion:
    """Save the numbers of a sweep's best trial as the draft; raise ConflictError for none, and as `save_draft` does."""
    best = sweeps.best_of(sweep)
    if best is None or not best.number:
        raise ConflictError("This sweep has found no better configuration.")
    objective, gain = Objective(sweep.measure, sweep.cutoff), sweeps.gain_of(sweep)
    held_out = (
        f"{gain.mean:+.3f} {objective.label} [{gain.low:.3f}, {gain.high:.3f}] on {gain.queries} held-out queries"
        if gain
        else "no judged query held out"
    )
    note = f"Sweep on {sweep.question_set.name}: {held_out}"[:_MAX_NOTE_LENGTH]
    preset = preset_named(sweep.preset)
    return save_draft(preset=preset, values=best.run.values or {}, note=note, actor=actor, replaces=replaces)


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
    *,
    preset: Preset,
    number: int,
    actor: User,
    live: int | None = None,
    fingerprint: str | None = None,
    reason: str = "",
) -> PresetVersion | None:
    """Make a draft or a retired version live and retire the previous one; return it, None for the shipped defaults.

    `number` 0 restores the shipped defaults. `live` and `fingerprint` are the live version and the fingerprint that
    the actor has seen. `reason` is why it goes live if a gate is not passed. Raises VersionConflictError if either has
    changed or if the version is live already, UnknownVersionError for an unknown number, and without a reason GateError
    for a gate that is not passed.
    """
    reason = storable(reason).strip()[:_MAX_REASON_LENGTH]
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
        results = gates.checked(preset, chosen, Principal(actor))
        if not gates.are_passed(results) and not reason:
            raise GateError(_refusal(results))
        _go_live(chosen, previous, actor, replaced=live_number)
        facts: dict[str, object] = {"gates": [it.as_json() for it in results]} if results else {}
        if not gates.are_passed(results):
            facts["override_reason"] = reason
        audit.record(
            "preset.promoted",
            actor=actor,
            subject=preset.name,
            number=number,
            retired=live_number,
            values=chosen.values if chosen else {},
            **facts,
        )
    return chosen


def roll_back(*, preset: Preset, actor: User, live: int | None = None) -> PresetVersion | None:
    """Make the version live again that the live one has replaced, without a gate; return it as `promote` does.

    `live` is the live version that the actor has seen. Raises VersionConflictError if it has changed, and
    UnknownVersionError where no promotion can be undone: a rollback itself cannot.
    """
    with _one_change(preset) as versions:
        previous = _with_status(versions, _LIVE)
        if live is not None and live != (previous.number if previous else SHIPPED):
            raise VersionConflictError("Another version is live now. Check the change again.")
        if previous is None or previous.replaced is None:
            raise UnknownVersionError("There is no version to roll back to.")
        number = previous.replaced
        chosen = next((version for version in versions if version.number == number), None)
        _go_live(chosen, previous, actor, replaced=None)
        audit.record("preset.rolled_back", actor=actor, subject=preset.name, number=number, retired=previous.number)
    return chosen


def _go_live(
    chosen: PresetVersion | None, previous: PresetVersion | None, actor: User, *, replaced: int | None
) -> None:
    if previous is not None:
        previous.status = PresetVersion.Status.RETIRED
        previous.save(update_fields=["status"])
    if chosen is not None:
        chosen.status, chosen.promoted_at, chosen.promoted_by = _LIVE, timezone.now(), actor
        chosen.replaced = replaced
        chosen.save(update_fields=["status", "promoted_at", "promoted_by", "replaced"])
        # What was measured with these numbers as a draft was measured with this version.
        measured = EvaluationRun.objects.filter(preset=chosen.preset, version=chosen.number, values=chosen.values)
        measured.filter(is_draft=True).update(is_draft=False)


def _refusal(results: list[gates.GateResult]) -> str:
    failed = [it for it in results if it.verdict is not gates.Verdict.PASSED]
    sets = "; ".join(f"{it.gate.question_set.name}: {it.sentence} (allowed loss {it.gate.max_loss:g})" for it in failed)
    return f"A gate is not passed. {sets}. Give a reason to promote anyway."


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
