"""Labels of the engine's codes and levels, of connectors and jobs. Pure: no Django, no request."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from corecube.data import read_toml
from corecube.reach import ReachChange
from corecube.scope import ExcludedConnection, Exclusion, Inclusion, Sensitivity, TrustLevel
from retrieval.engine.about import About
from retrieval.engine.types import ChunkFacts
from retrieval.models import Chunk
from retrieval.presets.stage_catalog import ABOUT, stage_classes
from retrieval.search.configuration import CONFIGURE, CONFIGURE_SPAN
from retrieval.search.draft import INTERLEAVE, INTERLEAVE_SPAN
from retrieval.text.document import row_unit

#: The words by code.
WORDS: Final[Mapping[str, Mapping[str, str]]] = read_toml("explorer", "wording.toml")
STAGE_LABELS: Final = WORDS["item_stages"]  #: The stages of an item of a sync, in order.
ROLE_LABELS: Final = WORDS["roles"]
MODE_LABELS: Final = WORDS["modes"]
#: Signals inside a sentence or a narrow column.
SIGNAL_WORDS: Final = WORDS["signals_in_text"]
FIELD_NAMES: Final[Mapping[str, str]] = {"A": "title", "B": "heading", "C": "text"}

_MAX_NAMES: Final = 6  #: Names in a list before the rest is counted.
_FINE_MS: Final = 10  #: Milliseconds below which a decimal is shown, and below which only a bound is shown.
_SHORT_MS: Final = 0.05
_STEPS: Final = (
    (timedelta(days=730), timedelta(days=365), "year"),
    (timedelta(days=60), timedelta(days=30), "month"),
    (timedelta(days=1), timedelta(days=1), "day"),
    (timedelta(hours=1), timedelta(hours=1), "hour"),
    (timedelta(minutes=1), timedelta(minutes=1), "minute"),
)
_SPANS: Final = {CONFIGURE_SPAN: CONFIGURE, INTERLEAVE_SPAN: INTERLEAVE}  #: Those that are no stages.
_ABOUTS: Final = (*(it.about for it in stage_classes()), *_SPANS.values())
_NOTE_LABELS: Final[Mapping[str, str]] = {code: label for it in _ABOUTS for code, label in it.notes.items()}
#: Notes that get a badge even where nothing degraded.
BADGES: Final = frozenset[str]().union(*(it.badges for it in _ABOUTS))


def preset_title(name: str) -> str:
    """Return a preset's name for people: "General search"; a reference version's says what it is."""
    base, _, reference = name.partition("@")
    title = WORDS["presets"].get(base, base.replace("_", " ").capitalize())
    return f"{title} ({reference})" if reference else title


def about(stage: str) -> About | None:
    """Return a stage's description; None for a stage of an earlier release."""
    return _SPANS.get(stage) or ABOUT.get(stage)


def stage_label(stage: str) -> str:
    """Return a stage's label: a word for its result."""
    known = about(stage)
    return known.label if known else stage.replace("_", " ")


def stage_purpose(stage: str) -> str:
    """Return what a stage does, in a sentence; empty for an unknown stage."""
    known = about(stage)
    return known.purpose if known else ""


def note_label(code: str) -> str:
    """Return a note's code as a badge: "reranker failed", "deadline exceeded before chunk retry"."""
    if code in _NOTE_LABELS:
        return _NOTE_LABELS[code]
    for beginning, label in WORDS["stage_notes"].items():
        if code.startswith(beginning):
            return label.format(code.removeprefix(beginning).replace("_", " "))
    return code.replace("_", " ")


def leg_label(leg: str) -> str:
    """Return a leg's short name: "vector", "full text"."""
    known = about(leg)
    return known.label if known else leg


def lane_label(leg: str) -> str:
    """Return the heading of a leg's ranking."""
    return WORDS["lanes"].get(leg, leg.replace("_", " ").capitalize())


def mode_label(mode: str) -> str:
    """Return a mode's label."""
    return MODE_LABELS.get(mode, f"{lane_label(mode)} only")


def signal_label(signal: str) -> str:
    """Return a signal's label."""
    return WORDS["signals"].get(signal, signal.capitalize())


def formula(name: str) -> str:
    """Return how a number is computed, by its signal, score type, measure or part; empty for an unknown one."""
    return WORDS["formulas"].get(name, "")


def level(value: Sensitivity | TrustLevel) -> str:
    """Return a sensitivity or trust level in lower case."""
    return value.name.lower()


def counted(number: int, noun: str) -> str:
    """Return "1 hit", "2 hits", "1,204 hits"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def ago(then: datetime, now: datetime) -> str:
    """Return how long ago a time was, in its largest full unit: "just now", "3 days ago".

    Months (30 days) and years (365 days) are used from two on. A time in the future is now.
    """
    passed = now - then
    for threshold, unit, noun in _STEPS:
        if passed >= threshold:
            return f"{counted(passed // unit, noun)} ago"
    return "just now"


def milliseconds(seconds: float) -> str:
    """Return a time in milliseconds: "< 0.1", "0.4", "38", "1,204"."""
    value = seconds * 1000
    if value < _SHORT_MS:
        return "< 0.1"
    return f"{value:.1f}" if value < _FINE_MS else f"{value:,.0f}"


def pages(first: int | None, last: int | None) -> str:
    """Return "p. 3" or "pp. 3-4"; empty without pages."""
    if first is None:
        return ""
    return f"p. {first}" if last in {None, first} else f"pp. {first}\N{EN DASH}{last}"


def rows(first: int | None, last: int | None, source_type: str) -> str:
    """Return "rows 12-40", "record 3" or "line 7", by source type; empty without rows."""
    if first is None:
        return ""
    unit = row_unit(source_type)
    return f"{unit} {first}" if last in {None, first} else f"{unit}s {first}\N{EN DASH}{last}"


def place(chunk: ChunkFacts | Chunk, source_type: str) -> str:
    """Return a chunk's place in its document: "p. 3", "rows 12-40", "p. 3, line 7", or empty."""
    spans = (pages(chunk.page_start, chunk.page_end), rows(chunk.row_start, chunk.row_end, source_type))
    return ", ".join(filter(None, spans))


def inclusion_rule(inclusion: Inclusion) -> str:
    """Return the rule that includes a connection, with both levels compared."""
    connection = inclusion.connection
    return (
        f"compartment {connection.compartment} through {inclusion.via}; "
        f"sensitivity {level(connection.sensitivity)} \N{LESS-THAN OR EQUAL TO} clearance {level(inclusion.clearance)}"
    )


def exclusion_word(reason: Exclusion) -> str:
    """Return why a connection is excluded, in short."""
    words = {
        Exclusion.NO_GRANT: "no clearance",
        Exclusion.CLEARANCE: "above clearance",
        Exclusion.KEY: "excluded by the API key",
        Exclusion.REQUEST: "excluded",
        Exclusion.DISABLED: "disabled",
    }
    return words[reason]


def exclusion_rule(excluded: ExcludedConnection) -> str:
    """Return the rule that excludes a connection."""
    connection = excluded.connection
    rules = {
        Exclusion.NO_GRANT: f"no clearance on compartment {connection.compartment}",
        Exclusion.CLEARANCE: _too_low(excluded),
        Exclusion.KEY: "excluded by the API key",
        Exclusion.REQUEST: "excluded in this query",
        Exclusion.DISABLED: "the connection is disabled",
    }
    return rules[excluded.reason]


def _too_low(excluded: ExcludedConnection) -> str:
    """Return "sensitivity restricted > clearance internal through group engineers"."""
    sensitivity = level(excluded.connection.sensitivity)
    if excluded.clearance is None:
        return f"sensitivity {sensitivity} is above the clearance"
    return f"sensitivity {sensitivity} > clearance {level(excluded.clearance)} through {excluded.via}"


def reach_summary(change: ReachChange) -> str:
    """Return who gains and who loses access to how many connections."""
    sentences = (_sentence(change.gained, "gain"), _sentence(change.lost, "lose"))
    return " ".join(filter(None, sentences)) or "Nobody's access changes."


def _sentence(counts: Mapping[str, int], verb: str) -> str:
    """Return "bob gains access to 2 connections." or "3 users lose access to up to 4 connections."."""
    if not counts:
        return ""
    limit = max(counts.values())
    if len(counts) == 1:
        return f"{next(iter(counts))} {verb}s access to {counted(limit, 'connection')}."
    bound = "" if set(counts.values()) == {limit} else "up to "
    return f"{len(counts):,} users {verb} access to {bound}{counted(limit, 'connection')}."


def short_list(names: Sequence[str]) -> str:
    """Return names as text, with the rest of a long list counted: "Ledger, Vault and 4 more"."""
    shown = ", ".join(names[:_MAX_NAMES])
    return f"{shown} and {len(names) - _MAX_NAMES:,} more" if len(names) > _MAX_NAMES else shown


def config_label(name: str) -> str:
    """Return the label of a config field."""
    return WORDS["connector_settings"].get(name, name.replace("_", " ").capitalize())


def audit_label(action: str) -> str:
    """Return an audited action in words: "Clearance changed"."""
    return WORDS["audit_actions"].get(action) or " ".join(action.replace("_", " ").split(".")).capitalize()


def capability_label(name: str) -> str:
    """Return the label of a step of a connection test."""
    return WORDS["connection_steps"].get(name, name.capitalize())


def duration(seconds: float) -> str:
    """Return "8.2 s", "3 min 5 s" or "2 h 10 min"."""
    minutes, rest = divmod(int(seconds), 60)
    hours, past = divmod(minutes, 60)
    if hours:
        return f"{hours} h {past} min"
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"


def time_left(seconds: float) -> str:
    """Return the estimated time left: "under a minute left", "about 4 min left"."""
    minutes = round(seconds / 60)
    if minutes < 1:
        return "under a minute left"
    hours, past = divmod(minutes, 60)
    return f"about {hours} h {past} min left" if hours else f"about {minutes} min left"


def money(amount: Decimal) -> str:
    """Return an amount with two decimal places from 1, four below; "0" for none."""
    if not amount:
        return "0"
    return f"{amount:,.2f}" if amount >= 1 else f"{amount:.4f}"
