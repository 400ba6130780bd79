"""One question to every preset: each a search of its own, with its own trace, whatever becomes of the others."""

import logging
from dataclasses import dataclass, field
from typing import Final

from corecube.access import Principal, ScopeRequest
from corecube.errors import CoreCubeError
from retrieval.engine.stored_filter import AskedFilter
from retrieval.models import SearchRecord
from retrieval.presets.catalog import PRESETS
from retrieval.presets.preset import Preset
from retrieval.search.outcome import SearchOutcome
from retrieval.search.request import SearchRequest
from retrieval.search.service import search

logger = logging.getLogger(__name__)

_SERVER_ERROR: Final = 500


@dataclass(frozen=True, slots=True)
class Asking:
    """What every preset is asked."""

    text: str
    narrowing: ScopeRequest = field(default_factory=ScopeRequest)
    #: What is left of the documents in scope.
    limits: AskedFilter = field(default_factory=AskedFilter)


@dataclass(frozen=True, slots=True)
class Attempt:
    """What one preset came to: an outcome, or why there is none."""

    preset: Preset
    outcome: SearchOutcome | None = None
    error: CoreCubeError | None = None


def usable_presets(principal: Principal) -> tuple[Preset, ...]:
    """Return the presets that a principal may search with."""
    return tuple(preset for preset in PRESETS.values() if principal.may_use(preset.name))


def ask_each(asking: Asking, principal: Principal) -> tuple[Attempt, ...]:
    """Return what each preset found, searched one after the other so that none takes another's time."""
    return tuple(_attempt(preset, asking, principal) for preset in usable_presets(principal))


def _attempt(preset: Preset, asking: Asking, principal: Principal) -> Attempt:
    request = SearchRequest(
        text=asking.text,
        preset=preset.name,
        top_k=None,
        narrowing=asking.narrowing,
        filter=asking.limits.filter,
        conditions=asking.limits.conditions,
        surface=SearchRecord.Surface.EXPLORER,
    )
    try:
        return Attempt(preset, search(request, principal=principal))
    except CoreCubeError as error:
        if error.status >= _SERVER_ERROR:
            logger.exception("side_by_side.failed preset=%s code=%s", preset.name, error.code)
        return Attempt(preset, error=error)
