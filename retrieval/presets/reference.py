"""Reference versions: a preset as its document describes it, line by line."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from corecube.data import read_toml
from corecube.errors import ConfigError
from retrieval.engine.pipeline import Pipeline
from retrieval.presets.preset import Preset, ReferenceLine
from retrieval.stages.resources import Resources


def reference_version(
    preset: Preset,
    description: str,
    *,
    build: Callable[[Any, Resources], Pipeline] | None = None,
    legs: tuple[str, ...] | None = None,
) -> Preset:
    """Return `PRESET@reference` with the lines of `reference.toml` in the preset's folder.

    `build` and `legs` are the preset's own by default. Raises ConfigError where two lines give a setting different
    values, TunablesError for an unknown setting or a value out of bounds.
    """
    lines = tuple(
        ReferenceLine(**line) for line in read_toml(f"retrieval.presets.{preset.name}", "reference.toml")["line"]
    )
    return replace(
        preset,
        name=f"{preset.name}@reference",
        description=description,
        defaults=preset.defaults.with_values(_values(lines)),
        build=build or preset.build,
        legs=legs or preset.legs,
        lines=lines,
    )


def _values(lines: Iterable[ReferenceLine]) -> dict[str, float]:
    found: dict[str, float] = {}
    for line in lines:
        for name, value in line.values.items():
            if found.setdefault(name, value) != value:
                raise ConfigError(f"Two lines of a reference give {name} different values: {found[name]}, {value}.")
    return found
