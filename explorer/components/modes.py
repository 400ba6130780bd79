"""The modes of each preset: all of its legs together, or one of them alone."""

from typing import Final

from django.conf import settings

from retrieval.engine.pipeline import HYBRID
from retrieval.presets.catalog import DEFAULT_PRESET, PRESETS
from retrieval.presets.helix.config import HelixConfig

#: Legs that search by words.
_BY_WORDS: Final = frozenset({"fulltext", "bm25", "sparse"})


def modes_of(preset: str) -> tuple[str, ...]:
    """Return the modes that a preset can search in; those of the default one for a preset that is not there."""
    found = PRESETS.get(preset, PRESETS[DEFAULT_PRESET])
    has_sparse = settings.CORECUBE_SPARSE_MODEL and isinstance(found.defaults, HelixConfig)
    return (HYBRID, *found.legs, *(("sparse",) if has_sparse else ()))


def mode_in(preset: str, mode: str) -> str:
    """Return a mode as a preset has it: for a leg by words that it lacks its own one, anything else as it is."""
    modes = modes_of(preset)
    if mode in modes or mode not in _BY_WORDS:
        return mode
    return next((it for it in modes if it in _BY_WORDS), mode)
