"""The answerability model of a preset: one calibrated on this installation, or the shipped one."""

import logging
from collections.abc import Mapping
from typing import Any, Final

from django.db import IntegrityError, transaction

from corecube import audit
from corecube.models import User
from corecube.sanitise import storable
from retrieval.encoders import Encoder
from retrieval.engine.caches import TtlCache
from retrieval.models import Calibration
from retrieval.ranking.answerability.model import AnswerabilityModel

logger = logging.getLogger(__name__)

_MAX_SOURCE_LENGTH: Final = 200  #: As the field holds it; a file name can be longer.


def encoder_identity(encoder: Encoder) -> str:
    """Return the identity of an embedding model and its weights."""
    return f"{encoder.name} ({encoder.weights})"


def active_models(encoder: Encoder) -> dict[str, AnswerabilityModel]:
    """Return the calibrated models by preset: those that were fitted on this encoder's signals.

    Cached for a second. An unreadable one is logged and skipped: searches then use the shipped model.
    """
    fitted = encoder_identity(encoder)
    models = {}
    for row in _active.get():
        if row.encoder == fitted:
            try:
                models[row.preset] = AnswerabilityModel.from_json(row.coefficients, is_calibrated=True)
            except (KeyError, TypeError, ValueError, AttributeError):
                logger.exception("calibration.unreadable id=%s preset=%s", row.pk, row.preset)
    return models


_active: Final = TtlCache(lambda: tuple(Calibration.objects.filter(is_active=True)))


def forget_active() -> None:
    """Clear the cache: the next search reads the active models from the database."""
    _active.forget()


def _changed() -> None:
    """Clear the cache now and on commit, as a search may read the old models until then."""
    forget_active()
    transaction.on_commit(forget_active)


def active_calibration(preset: str) -> Calibration | None:
    """Return the preset's active calibration, whatever encoder it was fitted on; None where there is none."""
    return Calibration.objects.filter(preset=preset, is_active=True).first()


def store(
    model: AnswerabilityModel,
    *,
    preset: str,
    encoder: Encoder,
    figures: Mapping[str, Any],
    source: str,
    actor: User | None,
) -> Calibration:
    """Store a fit as the preset's active calibration; the previous one stays as history."""
    row = Calibration(
        preset=preset,
        encoder=encoder_identity(encoder),
        coefficients=model.to_json(),
        figures=dict(figures),
        source=storable(source)[:_MAX_SOURCE_LENGTH],
        created_by=actor,
    )
    try:
        _activate(row)
    except IntegrityError:
        # Another one was stored meanwhile, which locked rows do not hold off. This one comes after it.
        _activate(row)
    return row


def _activate(row: Calibration) -> None:
    figures = {
        name: row.figures[name] for name in ("auroc", "ece", "answerable", "not_answerable") if name in row.figures
    }
    with transaction.atomic():
        _retire(row.preset)
        row.save(force_insert=True)
        _changed()
        audit.record("calibration.stored", actor=row.created_by, subject=row.preset, calibration=row.pk, **figures)


def reset(preset: str, *, actor: User | None) -> bool:
    """Go back to the shipped model; return whether there was a calibration to leave."""
    with transaction.atomic():
        retired = _retire(preset)
        _changed()
        if retired:
            audit.record("calibration.reset", actor=actor, subject=preset)
    return retired


def _retire(preset: str) -> bool:
    # The rows are locked in one order, so that two calibrations at once wait for each other.
    active = Calibration.objects.select_for_update().filter(preset=preset, is_active=True).order_by("pk")
    return bool(Calibration.objects.filter(pk__in=[row.pk for row in active]).update(is_active=False))
