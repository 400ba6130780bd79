"""Presets: the live version, the changes of a version, and the form's fields by section."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.forms import BoundField

from corecube.models import User
from explorer import wording
from explorer.components.forms import TunablesForm
from retrieval.engine.tunables import Change, TunableFacts, diff
from retrieval.models import PresetVersion
from retrieval.presets.catalog import preset_named
from retrieval.presets.preset import Preset, PresetConfig, ReferenceLine
from retrieval.search.configuration import SHIPPED, Configuration, fitted

_LARGE_SPAN: Final = 1_000  #: Whole numbers with so wide a range have sliders that move in ratios.
_FINE_STEPS: Final = 100
_TONES: Mapping[str, str] = {PresetVersion.Status.LIVE: "good", PresetVersion.Status.DRAFT: "warn"}


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """A setting that differs between two versions."""

    name: str
    before: str
    after: str
    help: str


@dataclass(frozen=True, slots=True)
class _ReferenceSetting:
    name: str
    value: str
    tuned: str  #: The tuned preset's default, if it differs; empty otherwise.


@dataclass(frozen=True, slots=True)
class ReferenceRow:
    """A line of a document, with the settings that follow it."""

    line: ReferenceLine
    section: str  #: Heading in the document; empty if it is that of the row above.
    settings: tuple[_ReferenceSetting, ...]


@dataclass(frozen=True, slots=True)
class FieldRow:
    """A tunable in the form."""

    field: BoundField
    facts: TunableFacts
    limits: str  #: "default 200, 10 to 1000".
    live: str  #: The live value, if the field's value differs; empty otherwise.

    @property
    def is_changed(self) -> bool:
        """Whether the field's value differs from the shipped one."""
        return str(self.field.value()) != str(self.facts.default)

    @property
    def slider_steps(self) -> int:
        """Steps of the slider's length; 0 for one that moves in ratios, since its range is large."""
        span = self.facts.high - self.facts.low
        if self.facts.is_whole:
            return int(span) if span < _LARGE_SPAN else 0
        return _FINE_STEPS


@dataclass(frozen=True, slots=True)
class FieldSection:
    """A section of the form."""

    title: str
    help: str
    rows: tuple[FieldRow, ...]

    @property
    def changed(self) -> int:
        """How many of its settings differ from the shipped ones."""
        return sum(row.is_changed for row in self.rows)

    @property
    def is_open(self) -> bool:
        """Whether somebody should look at it: a setting differs from the live one, or is wrong."""
        return any(row.live or row.field.errors for row in self.rows)


def preset_row(
    preset: Preset, *, live: PresetVersion | None, draft: PresetVersion | None, now: datetime
) -> dict[str, Any]:
    """Return a preset's row; without a live version it uses the shipped defaults."""
    return {
        "name": preset.name,
        "title": wording.preset_title(preset.name),
        "is_reference": bool(preset.lines),
        "description": preset.description,
        "live": version_label(live.number if live else SHIPPED),
        "since": _event(live.promoted_by, live.promoted_at, now) if live else "",
        "changed": _changed(preset, live) if live else 0,
        "draft": draft.number if draft else None,
    }


def version_label(number: int) -> str:
    """Return the label of a version."""
    return f"version {number}" if number != SHIPPED else "shipped defaults"


def version_rows(versions: list[PresetVersion], now: datetime) -> Iterator[dict[str, Any]]:
    """Yield the history, newest first, then the shipped defaults."""
    for version in versions:
        yield {
            **_version(version.number, version.status),
            "note": version.note,
            "changed": _changed(preset_named(version.preset), version),
            "created": _event(version.created_by, version.created_at, now),
            "promoted": _event(version.promoted_by, version.promoted_at, now) if version.promoted_at else "",
        }
    status = PresetVersion.Status
    is_live = all(version.status != status.LIVE for version in versions)
    yield _version(SHIPPED, status.LIVE if is_live else status.RETIRED)


def _version(number: int, status: str) -> dict[str, Any]:
    shown = {"number": number, "status": status, "is_live": status == PresetVersion.Status.LIVE}
    return {**shown, "tone": _TONES.get(status, ""), "note": "", "changed": 0, "created": "", "promoted": ""}


def change_rows(before: PresetConfig, after: PresetConfig) -> tuple[ChangeRow, ...]:
    """Return the settings that differ between two configurations, in stage order; of two presets, the common ones."""
    facts = {it.name: it for it in before.declared_below()}
    old, new = before.values(), after.values()
    common = [it.name for it in after.declared_below() if it.name in facts]
    shared = (Change(name, old[name], new[name]) for name in common if old[name] != new[name])
    changes = diff(before, after) if type(before) is type(after) else shared
    return tuple(
        ChangeRow(it.name, _shown(it.before, facts[it.name]), _shown(it.after, facts[it.name]), facts[it.name].help)
        for it in changes
    )


def reference_rows(preset: Preset) -> Iterator[ReferenceRow]:
    """Yield the lines of a reference version, in the document's order. A setting of its own has no tuned value."""
    facts = {it.name: it for it in preset.defaults.declared_below()}
    values, tuned = preset.defaults.values(), preset_named(preset.base).defaults.values()
    above = ""
    for line in preset.lines:
        settings = (
            _ReferenceSetting(
                name,
                _shown(values[name], facts[name]),
                _shown(tuned[name], facts[name]) if tuned.get(name, values[name]) != values[name] else "",
            )
            for name in line.values
        )
        yield ReferenceRow(line, line.section if line.section != above else "", tuple(settings))
        above = line.section


def field_sections(form: TunablesForm, live: Configuration) -> Iterator[FieldSection]:
    """Yield the sections of the form, with the live values."""
    values = live.config.values()
    for section in live.config.sections():
        rows = (field_row(form[it.name], it, it.default, live=values[it.name]) for it in section.tunables)
        # The help of the outermost config applies to all sections.
        yield FieldSection(section.label, section.help if section.name else "", tuple(rows))


def _changed(preset: Preset, version: PresetVersion) -> int:
    """Return the number of stored settings of a version that differ from the shipped ones."""
    shipped = preset.defaults.values()
    return sum(shipped.get(name) != value for name, value in version.values.items())


def stored_config(preset: Preset, version: PresetVersion | None) -> PresetConfig:
    """Return a version's configuration as a search would use it; the defaults for none."""
    return fitted(preset, version.number, version.values)[0] if version else preset.defaults


def field_row(field: BoundField, facts: TunableFacts, default: float, *, live: float | None = None) -> FieldRow:
    """Return the row of a tunable with this default; without a live value, none is shown."""
    limits = f"default {figure(default)}, {figure(facts.low)} to {figure(facts.high)}"
    differs = live is not None and str(field.value()) != str(live)
    return FieldRow(field, facts, limits, f"live {figure(live)}" if live is not None and differs else "")


def _shown(value: float, facts: TunableFacts) -> str:
    return f"{figure(value)} {facts.unit}".rstrip()


def figure(value: float) -> str:
    """Return a number as text: "1,000,000", "0.6", "2"."""
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def _event(user: User | None, at: datetime | None, now: datetime) -> str:
    who = f"by {user.username}" if user else "by a deleted user"
    return f"{who}, {wording.ago(at, now)}" if at else who
