"""What every stage tells about itself, by its name: the stages in `retrieval/stages` and in the presets' `stages`."""

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
    """Yield the class of every stage; those that presets share first."""
    for module in (*_modules(stages), *_modules(presets)):
        for _, member in getmembers(module, isclass):
            if member.__module__ == module.__name__ and isinstance(member.__dict__.get("about"), About):
                yield member


def _modules(package: ModuleType) -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not found.ispkg and ".stages." in found.name:
            yield import_module(found.name)


#: Where stages of two presets share a name, they do the same in their own ways: the shared one speaks for both.
ABOUT: Final[Mapping[str, About]] = {Legs.name: Legs.about} | {
    stage.name: stage.about for stage in reversed(list(stage_classes()))
}
