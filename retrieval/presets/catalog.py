"""The presets that there are."""

from typing import Final

from retrieval.errors import UnknownPresetError
from retrieval.presets.consolidated.pipeline import CONSOLIDATED
from retrieval.presets.contextpack.pipeline import CONTEXTPACK
from retrieval.presets.corecube.pipeline import CORECUBE
from retrieval.presets.helix.pipeline import HELIX
from retrieval.presets.preset import Preset

PRESETS: Final = {preset.name: preset for preset in (CORECUBE, HELIX, CONSOLIDATED, CONTEXTPACK)}
DEFAULT_PRESET: Final = "corecube"


def preset_named(name: str) -> Preset:
    """Return the preset; raise UnknownPresetError, which names those that exist."""
    if name not in PRESETS:
        message = f"There is no preset {name!r}; there are: {', '.join(PRESETS)}."
        raise UnknownPresetError(message)
    return PRESETS[name]
