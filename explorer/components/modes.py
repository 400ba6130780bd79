"""The modes of each preset: all of its legs, or a single one."""

from typing import Final

from django.conf import settings

from retrieval.engine.pipeline import HYBRID
from retrieval.presets.catalog import DEFAULT_PRESET, PRESETS
from retrieval.presets.helix.config import HelixConfig

_KEYWORD_LEGS: Final = frozenset({"fulltext", "bm25", "sparse"})


def modes_of(preset: str) -> tuple[str, ...]:
    """Return the modes of a preset; those of the default one for an unknown preset."""
    found = PRESETS.get(preset, PRESETS[DEFAULT_PRESET])
    has_sparse = settings.CORECUBE_SPARSE_MODEL and isinstance(found.defaults, HelixConfig)
    return (HYBRID, *found.legs, *(("sparse",) if has_sparse else ()))


def mode_in(preset: str, mode: str) -> str:
    """Return a mode for a preset: its own keyword leg instead of one that it lacks, anything else unchanged."""
    modes = modes_of(preset)
    if mode in modes or mode not in _KEYWORD_LEGS:
        return mode
    return next((it for it in modes if it in _KEYWORD_LEGS), mode)
