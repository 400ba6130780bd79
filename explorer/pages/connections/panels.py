"""Connections: where each stands, what their sources allow, and who sees them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from corecube.connectors.check import STEPS
from corecube.connectors.kinds import KINDS
from corecube.connectors.types import Capability
from corecube.models import Connection
from corecube.scope import Sensitivity, TrustLevel
from corecube.sight import Sight
from explorer import wording
from explorer.pages.connections.job_panels import SyncRow, sync_row
from explorer.wording.configuration import capability_label, config_label, time_left
from retrieval.ingest.jobs import JobState

#: Names that a list of groups or users gives before it only counts.
_NAMED: Final = 6


@dataclass(frozen=True, slots=True)
class ConnectionRow:
    """A connection in the list."""

    slug: str
    name: str
    kind: str
    #: "Folder on the server".
    kind_label: str
    compartment: str
    sensitivity: str
    trust: str
    enabled: bool
    documents: int
    chunks: int
    #: "3 days ago", or "never".
    synced: str
    #: When the schedule starts the next sync: "in about 3 h 5 min"; empty without a schedule.
    next_sync: str
    sync: SyncRow | None
    problems: int


@dataclass(frozen=True, slots=True)
class ConnectionCounts:
    """What is stored and known of the connections, by connection id."""

    documents: Mapping[int, int]
    chunks: Mapping[int, int]
    problems: Mapping[int, int]
    #: The latest sync of each.
    syncs: Mapping[int, JobState]


@dataclass(frozen=True, slots=True)
class CheckRow:
    """One thing that a source must allow."""

    label: str
    #: passed, failed or not tried.
    state: str
    message: str


@dataclass(frozen=True, slots=True)
class SightWords:
    """Groups and users in words: "groups engineers, staff", "14 users"."""

    groups: str
    users: str
    names: str


def connection_row(connection: Connection, counts: ConnectionCounts, now: datetime) -> ConnectionRow:
    """Return a connection's row."""
    job = counts.syncs.get(connection.pk)
    documents = counts.documents.get(connection.pk, 0)
    return ConnectionRow(
        slug=connection.slug,
        name=connection.name,
        kind=connection.kind,
        kind_label=KINDS[connection.kind].label if connection.kind in KINDS else connection.kind,
        compartment=connection.compartment.name,
        sensitivity=wording.level(Sensitivity(connection.sensitivity)),
        trust=wording.level(TrustLevel(connection.trust)),
        enabled=connection.enabled,
        documents=documents,
        chunks=counts.chunks.get(connection.pk, 0),
        synced=wording.ago(connection.last_synced_at, now) if connection.last_synced_at else "never",
        next_sync=_next_sync(connection, now),
        sync=sync_row(job, now, known=documents) if job else None,
        problems=counts.problems.get(connection.pk, 0),
    )


def check_rows(capabilities: Sequence[Capability]) -> list[CheckRow]:
    """Return what was tried, and after a failure what was not tried any more."""
    rows = [CheckRow(capability_label(it.name), "passed" if it.ok else "failed", it.message) for it in capabilities]
    if capabilities and not capabilities[-1].ok and capabilities[-1].name in STEPS:
        later = STEPS[STEPS.index(capabilities[-1].name) + 1 :]
        rows += [CheckRow(capability_label(name), "not tried", "") for name in later]
    return rows


def config_rows(connection: Connection) -> list[tuple[str, str]]:
    """Return what a connection's config says beside its defaults, as label and value."""
    config = connection.config if isinstance(connection.config, dict) else {}
    return [(config_label(name), _shown(name, value)) for name, value in config.items()]


def sight_words(sight: Sight) -> SightWords:
    """Return groups and users as a sentence takes them, long lists cut."""
    noun = "group" if len(sight.groups) == 1 else "groups"
    return SightWords(
        groups=f"{noun} {_some(sight.groups)}" if sight.groups else "",
        users=wording.counted(len(sight.users), "user"),
        names=_some(sight.users),
    )


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMED])
    return f"{shown} and {len(names) - _NAMED:,} more" if len(names) > _NAMED else shown


def _shown(name: str, value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if name.endswith("_bytes") and isinstance(value, int):
        return f"{value / 2**20:g}"
    return str(value)


def _next_sync(connection: Connection, now: datetime) -> str:
    """Return when the schedule starts the next sync; empty without one, or while the connection is disabled."""
    if not connection.enabled or connection.sync_every_minutes is None:
        return ""
    if connection.next_sync_at is None or connection.next_sync_at <= now:
        return "due now"
    return f"in {time_left((connection.next_sync_at - now).total_seconds()).removesuffix(' left')}"


__all__ = [
    "CheckRow",
    "ConnectionCounts",
    "ConnectionRow",
    "SightWords",
    "SyncRow",
    "check_rows",
    "config_rows",
    "connection_row",
    "sight_words",
    "sync_row",
]
