"""The numbers that a search runs with: the preset's defaults, its live version or draft, the request's overrides."""

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from typing import Final

from django.conf import settings

from retrieval.engine.about import About, StageGroup
from retrieval.engine.pipeline import HYBRID
from retrieval.engine.state import Note, Span
from retrieval.errors import UnknownVersionError
from retrieval.index.reading import CompiledQuery
from retrieval.models import PresetVersion
from retrieval.presets.preset import Preset, PresetConfig

logger = logging.getLogger(__name__)

CONFIGURE_SPAN: Final = "configure"  #: The span that sets a search's numbers, which is no stage.
CONFIGURE: Final = About(
    "set up",
    "Applies the settings that differ from the live version.",
    group=StageGroup.QUESTION,
    unit="",
    notes={
        "config_unfit": "invalid settings ignored",
        "overridden": "settings overridden",
        "rewritten": "follow-up rewritten",
        "mode": "one leg only",
    },
    badges=frozenset({"mode", "overridden"}),
)
SHIPPED: Final = 0  #: The number of the defaults that a preset is shipped with, which serve while no version is live.


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """What one search runs with: a preset's numbers, where they come from, and the mode."""

    config: PresetConfig = field(default_factory=PresetConfig)
    number: int = SHIPPED
    is_draft: bool = False
    mode: str = HYBRID  #: "hybrid", or the only leg that runs.
    #: What the request set, by dotted name, and the value before.
    overrides: Mapping[str, float] = field(default_factory=dict)
    overridden: Mapping[str, float] = field(default_factory=dict)
    #: Why stored values do not fit this release; their defaults serve in their place.
    unfit: Mapping[str, str] = field(default_factory=dict)

    def span(self, more: tuple[Note, ...] = ()) -> tuple[Span, ...]:
        """Return the trace's first span; nothing without `more` where the live version serves as it was stored."""
        notes = (*more, *self._notes())
        return (Span(CONFIGURE_SPAN, 0.0, 0, 0, notes=notes),) if notes else ()

    def trace_json(self) -> dict[str, object]:
        """Return what a stored trace says of it."""
        return {"version": self.number, "is_draft": self.is_draft, "mode": self.mode, "overrides": dict(self.overrides)}

    def _notes(self) -> Iterator[Note]:
        if self.is_draft:
            what = f"the draft, version {self.number}" if self.number else "the numbers of an evaluation"
            yield Note("draft", f"Ran with {what}.")
        if self.mode != HYBRID:
            yield Note("mode", f"Only the leg {self.mode!r} searched.")
        if self.unfit:
            text = f"Version {self.number} has invalid values: {_listed(self.unfit)}."
            yield Note("config_unfit", text, degraded=True)
        if self.overrides:
            now = self.overrides
            changes = {name: f"to {now[name]:g} instead of {before:g}" for name, before in self.overridden.items()}
            yield Note("overridden", f"The request set {_listed(changes)}.")


def configuration_of(
    preset: Preset,
    *,
    overrides: Mapping[str, object] | None = None,
    draft: bool = False,
    values: Mapping[str, object] | None = None,
    number: int | None = None,
) -> Configuration:
    """Return the numbers that a search with the preset runs with, read by one query, so that a promotion holds at once.

    A reference version has no stored ones. With `values`, the differences from the defaults, nothing stored is read;
    with a `number` too, they are those that this version had earlier, as far as they fit this release.
    Raises UnknownVersionError when there is no draft to run with, TunablesError for invalid values, and OverridesError.
    """
    if values is not None and number is not None:
        config, unfit = fitted(preset, number, values)
        return Configuration(config=config, number=number, unfit=unfit)
    if values is not None:
        return Configuration(config=preset.defaults.with_values(values), is_draft=True)
    status = PresetVersion.Status.DRAFT if draft else PresetVersion.Status.LIVE
    stored = None if preset.lines else _stored(preset.name, status).first()
    if stored is None and draft:
        raise UnknownVersionError("This preset has no draft.")
    number, values = stored or (SHIPPED, "{}")
    config, unfit = _fitted(preset.name, number, preset.defaults, values)
    found = Configuration(config=config, number=number, is_draft=draft, unfit=unfit)
    if not overrides:
        return found
    overrides = config.by_present_names(overrides)
    changed = config.with_overrides(overrides, limits={config.budget[0]: settings.CORECUBE_MAX_CONTEXT_TOKENS})
    before, after = config.values(), changed.values()
    return replace(
        found,
        config=changed,
        overrides={name: after[name] for name in overrides},
        overridden={name: before[name] for name in overrides},
    )


@cache
def _stored(preset: str, status: PresetVersion.Status) -> CompiledQuery:
    return CompiledQuery(PresetVersion.objects.filter(preset=preset, status=status).values_list("number", "values"))


def fitted(preset: Preset, number: int, values: Mapping[str, object]) -> tuple[PresetConfig, Mapping[str, str]]:
    """Return the config of stored values, and what is wrong with those that do not fit, by dotted name."""
    return _fitted(preset.name, number, preset.defaults, json.dumps(values))


@lru_cache(maxsize=64)
def _fitted(name: str, number: int, defaults: PresetConfig, stored: str) -> tuple[PresetConfig, Mapping[str, str]]:
    config, unfit = defaults.fitted(dict(sorted(json.loads(stored).items())))
    if unfit:
        logger.warning("preset.unfit preset=%s version=%d tunables=%s", name, number, ",".join(unfit))
    return config, unfit


def _listed(clauses: Mapping[str, str]) -> str:
    return "; ".join(f"{name} {clause}" for name, clause in clauses.items())
