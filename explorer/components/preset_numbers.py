"""Presets: which version of each is live, what a version changes, and the form's fields by section."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.forms import BoundField

from corecube.models import User
from explorer import wording
from explorer.components.tunables_form import TunablesForm
from retrieval.engine.tunables import Change, TunableFacts, diff
from retrieval.models import PresetVersion
from retrieval.presets.catalog import preset_named
from retrieval.presets.preset import Preset, PresetConfig
from retrieval.search.configuration import SHIPPED, Configuration, fitted

_TONES: Mapping[str, str] = {PresetVersion.Status.LIVE: "good", PresetVersion.Status.DRAFT: "warn"}


@dataclass(frozen=True, slots=True)
class PresetRow:
    """A preset in the list."""

    name: str
    description: str
    live: str
    #: "by alice, 3 days ago"; empty for the shipped defaults.
    since: str
    #: How many numbers of the live version differ from the defaults.
    changed: int
    #: The draft's number; None where there is none.
    draft: int | None


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """A number that differs between two versions."""

    name: str
    before: str
    after: str
    help: str


@dataclass(frozen=True, slots=True)
class VersionRow:
    """A version in the history."""

    number: int
    status: str
    tone: str
    note: str
    #: How many numbers differ from the defaults.
    changed: int
    #: "by alice, 3 days ago"; empty for the shipped defaults.
    created: str
    #: The same for the last promotion; empty where there was none.
    promoted: str
    is_live: bool


@dataclass(frozen=True, slots=True)
class FieldRow:
    """A tunable in the form."""

    field: BoundField
    name: str
    help: str
    unit: str
    #: "default 200, 10 to 1000".
    limits: str
    #: What is live, where the field's value is another one; empty otherwise.
    live: str
    costs: bool


@dataclass(frozen=True, slots=True)
class FieldSection:
    """The tunables of one stage in the form."""

    title: str
    help: str
    rows: tuple[FieldRow, ...]


def preset_row(preset: Preset, *, live: PresetVersion | None, draft: PresetVersion | None, now: datetime) -> PresetRow:
    """Return a preset's row; it runs with the shipped defaults where no version is live."""
    return PresetRow(
        name=preset.name,
        description=preset.description,
        live=version_label(live.number if live else SHIPPED),
        since=_deed(live.promoted_by, live.promoted_at, now) if live else "",
        changed=_changed(preset, live) if live else 0,
        draft=draft.number if draft else None,
    )


def version_label(number: int) -> str:
    """Return a version as people read it."""
    return f"version {number}" if number != SHIPPED else "shipped defaults"


def version_rows(versions: list[PresetVersion], now: datetime) -> Iterator[VersionRow]:
    """Yield the history, newest first, and the shipped defaults at its end."""
    for version in versions:
        yield VersionRow(
            number=version.number,
            status=version.status,
            tone=_TONES.get(version.status, ""),
            note=version.note,
            changed=_changed(preset_named(version.preset), version),
            created=_deed(version.created_by, version.created_at, now),
            promoted=_deed(version.promoted_by, version.promoted_at, now) if version.promoted_at else "",
            is_live=version.status == PresetVersion.Status.LIVE,
        )
    is_live = not any(version.status == PresetVersion.Status.LIVE for version in versions)
    status = PresetVersion.Status.LIVE if is_live else PresetVersion.Status.RETIRED
    yield VersionRow(SHIPPED, status, _TONES.get(status, ""), "", 0, "", "", is_live)


def change_rows(before: PresetConfig, after: PresetConfig) -> tuple[ChangeRow, ...]:
    """Return what differs between two configurations, in the order of the stages.

    Of configurations of two presets only what both have.
    """
    facts = {it.name: it for it in before.declared_below()}
    changes = diff(before, after) if type(before) is type(after) else _shared_changes(before, after)
    return tuple(
        ChangeRow(it.name, _shown(it.before, facts[it.name]), _shown(it.after, facts[it.name]), facts[it.name].help)
        for it in changes
    )


def _shared_changes(before: PresetConfig, after: PresetConfig) -> Iterator[Change]:
    old, new = before.values(), after.values()
    return (Change(name, old[name], new[name]) for name in old if name in new and old[name] != new[name])


def field_sections(form: TunablesForm, live: Configuration) -> tuple[FieldSection, ...]:
    """Return the form's fields by section, each beside what is live."""
    values = live.config.values()
    return tuple(
        FieldSection(
            title=section.label,
            # What the outermost config says of itself is true of all sections.
            help=section.help if section.name else "",
            rows=tuple(_field_row(form[facts.name], facts, values[facts.name]) for facts in section.tunables),
        )
        for section in live.config.sections()
    )


def _changed(preset: Preset, version: PresetVersion) -> int:
    """Return how many stored numbers of a version differ from those that are shipped now."""
    shipped = preset.defaults.values()
    return sum(shipped.get(name) != value for name, value in version.values.items())


def stored_config(preset: Preset, version: PresetVersion | None) -> PresetConfig:
    """Return a version's configuration as a search would run with it; the defaults for none."""
    return fitted(preset, version.number, version.values)[0] if version else preset.defaults


def _field_row(field: BoundField, facts: TunableFacts, live: float) -> FieldRow:
    return FieldRow(
        field=field,
        name=facts.name,
        help=facts.help,
        unit=facts.unit,
        limits=f"default {figure(facts.default)}, {figure(facts.low)} to {figure(facts.high)}",
        live="" if str(field.value()) == str(live) else f"live {figure(live)}",
        costs=facts.costs,
    )


def _shown(value: float, facts: TunableFacts) -> str:
    return f"{figure(value)} {facts.unit}".rstrip()


def figure(value: float) -> str:
    """Return a number as people write it: "1,000,000", "0.6", "2"."""
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def _deed(user: User | None, at: datetime | None, now: datetime) -> str:
    """Return who did something and when: "by alice, 3 days ago"."""
    who = f"by {user.username}" if user else "by a deleted user"
    return f"{who}, {wording.ago(at, now)}" if at else who
