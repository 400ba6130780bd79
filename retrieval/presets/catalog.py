"""The list of presets. A preset is a folder in `retrieval/presets` and a line here; so is its reference version.

The descriptions of all stages are those in `retrieval/stages` and in the presets' `stages`.
"""

import pkgutil
from collections.abc import Iterator, Mapping
from importlib import import_module
from inspect import getmembers, isclass
from types import ModuleType
from typing import Any, Final

from django.utils.module_loading import import_string

from corecube.errors import InvalidRequestError
from retrieval import presets, stages
from retrieval.engine.about import About
from retrieval.engine.pipeline import Legs
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


def stage_classes() -> Iterator[type[Any]]:
    """Yield the class of every stage, shared ones first."""
    for module in (*_modules(stages), *_modules(presets)):
        for _, member in getmembers(module, isclass):
            if member.__module__ == module.__name__ and isinstance(member.__dict__.get("about"), About):
                yield member


def _modules(package: ModuleType) -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not found.ispkg and ".stages." in found.name:
            yield import_module(found.name)


#: Of stages with the same name in several presets the shared one is listed.
ABOUT: Final[Mapping[str, About]] = {Legs.name: Legs.about} | {
    stage.name: stage.about for stage in reversed(list(stage_classes()))
}
