"""One query to every preset: each is a separate search with its own trace, even if others fail."""

import logging
from dataclasses import dataclass, field
from typing import Final

from corecube.access import Principal, ScopeRequest
from corecube.errors import CoreCubeError
from retrieval.engine.stored_filter import FullFilter
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
    """The query for every preset."""

    text: str
    narrowing: ScopeRequest = field(default_factory=ScopeRequest)
    #: The filter of documents.
    limits: FullFilter = field(default_factory=FullFilter)


@dataclass(frozen=True, slots=True)
class Attempt:
    """The outcome of one preset, or its error."""

    preset: Preset
    outcome: SearchOutcome | None = None
    error: CoreCubeError | None = None


def usable_presets(principal: Principal) -> tuple[Preset, ...]:
    """Return the presets that a principal may search with."""
    return tuple(preset for preset in PRESETS.values() if principal.may_use(preset.name))


def ask_each(asking: Asking, principal: Principal) -> tuple[Attempt, ...]:
    """Search with each preset, one after another so that they do not slow each other down."""
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
