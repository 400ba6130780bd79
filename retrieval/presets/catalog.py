"""The list of presets. A preset is a folder in `retrieval/presets` and a line here; so is its reference version."""

from collections.abc import Mapping
from typing import Final

from django.utils.module_loading import import_string

from corecube.errors import InvalidRequestError
from retrieval.errors import UnknownPresetError
from retrieval.presets.preset import Preset

#: In the order in which the pages list them.
_SHIPPED: Final = (
    "retrieval.presets.corecube.pipeline.CORECUBE",
    "retrieval.presets.corecube.reference.CORECUBE_REFERENCE",
    "retrieval.presets.helix.pipeline.HELIX",
    "retrieval.presets.helix.reference.HELIX_REFERENCE",
    "retrieval.presets.consolidated.pipeline.CONSOLIDATED",
    "retrieval.presets.consolidated.reference.CONSOLIDATED_REFERENCE",
    "retrieval.presets.contextpack.pipeline.CONTEXTPACK",
    "retrieval.presets.contextpack.reference.CONTEXTPACK_REFERENCE",
)
PRESETS: Final[Mapping[str, Preset]] = {preset.name: preset for preset in map(import_string, _SHIPPED)}
#: Without reference versions: those whose numbers can be changed.
TUNED: Final[Mapping[str, Preset]] = {name: preset for name, preset in PRESETS.items() if not preset.lines}
DEFAULT_PRESET: Final = "corecube"


def preset_named(name: str) -> Preset:
    """Return the preset; raise UnknownPresetError, which lists them."""
    if name not in PRESETS:
        raise UnknownPresetError(f"Unknown preset {name!r}. Available presets: {', '.join(PRESETS)}.")
    return PRESETS[name]


def version_of(base: str, name: str) -> Preset:
    """Return the tuned preset `base` or its reference version by name; raise InvalidRequestError for any other."""
    found = preset_named(name)
    if found.base != base:
        raise InvalidRequestError(f"This needs the preset {base!r} or its reference version, not {name!r}.")
    return found
