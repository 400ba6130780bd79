"""The descriptions of all stages by name: those in `retrieval/stages` and in the presets' `stages`."""

import pkgutil
from collections.abc import Iterator, Mapping
from importlib import import_module
from inspect import getmembers, isclass
from types import ModuleType
from typing import Any, Final

from retrieval import presets, stages
from retrieval.engine.about import About
from retrieval.engine.pipeline import Legs


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
