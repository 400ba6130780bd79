"""What a preset is."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from corecube.errors import ConfigError
from retrieval.engine.config import PresetConfig
from retrieval.engine.pipeline import Pipeline
from retrieval.stages.resources import Resources


@dataclass(frozen=True, slots=True)
class Preset:
    """A way of retrieving."""

    name: str
    description: str
    #: What it runs with where no version says otherwise; `build` takes this type.
    defaults: PresetConfig
    build: Callable[[Any, Resources], Pipeline]
    #: The legs that it has without optional models; each can search alone.
    legs: tuple[str, ...]

    def __post_init__(self) -> None:
        """Raise ConfigError where the shipped numbers are not those that their own type declares as defaults."""
        if self.defaults != type(self.defaults)():
            raise ConfigError(f"The defaults of the preset {self.name} differ from those of its configuration class.")

    def version(self, pipeline: Pipeline, config: PresetConfig) -> str:
        """Return a fingerprint of the stages and of every number: it changes when either does."""
        return hashlib.sha256(f"{pipeline!r} {config}".encode()).hexdigest()[:12]
