"""Rows of connections, results of tests, and summaries of access."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import Count, Sum
from django.utils import timezone

from corecube.connectors.check import STEPS
from corecube.connectors.kinds import KINDS
from corecube.connectors.types import Capability
from corecube.models import Connection
from corecube.reach import ConnectionAccess
from corecube.scope import Sensitivity, TrustLevel
from explorer import wording
from explorer.pages.connections.jobs import SyncRow, sync_row
from explorer.wording.configuration import capability_label, config_label, time_left
from retrieval.ingest.jobs import JobState, job_states
from retrieval.models import Document, Sync, SyncProblem, TermFrequency

#: Names in a list of groups or users before the rest is counted.
_MAX_NAMES: Final = 6


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
class _CheckRow:
    label: str
    #: passed, failed or not tried.
    state: str
    message: str


@dataclass(frozen=True, slots=True)
class _AccessSummary:
    """Groups and users as text: "groups engineers, staff", "14 users"."""

    groups: str
    users: str
    names: str


def connection_rows(connections: list[Connection]) -> list[ConnectionRow]:
    """Return the rows of connections in seven queries."""
    ids = [connection.pk for connection in connections]
    # The empty lexeme counts chunks, so that millions of them need not be counted one by one.
    chunks = TermFrequency.objects.filter(lexeme="", connection_id__in=ids).values_list("connection_id")
    documents = Document.objects.filter(connection_id__in=ids).values_list("connection_id")
    problems = SyncProblem.objects.filter(connection_id__in=ids).values_list("connection_id")
    syncs = Sync.objects.filter(connection_id__in=ids).select_related("connection")
    latest = syncs.order_by("connection_id", "-queued_at").distinct("connection_id")
    now = timezone.now()
    jobs = {job.sync.connection_id: job for job in job_states(latest, now)}
    counts = [
        dict(documents.annotate(Count("pk"))),
        dict(chunks.annotate(Sum("chunks"))),
        dict(problems.annotate(Count("pk"))),
    ]
    return [_row(it, jobs.get(it.pk), now, *(count.get(it.pk, 0) for count in counts)) for it in connections]


def _row(
    connection: Connection, job: JobState | None, now: datetime, documents: int, chunks: int, problems: int
) -> ConnectionRow:
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
        chunks=chunks,
        synced=wording.ago(connection.last_synced_at, now) if connection.last_synced_at else "never",
        next_sync=_next_sync(connection, now),
        sync=sync_row(job, now, known=documents) if job else None,
        problems=problems,
    )


def check_rows(capabilities: Sequence[Capability]) -> list[_CheckRow]:
    """Return the steps of a test; those after a failure are "not tried"."""
    rows = [_CheckRow(capability_label(it.name), "passed" if it.ok else "failed", it.message) for it in capabilities]
    if capabilities and not capabilities[-1].ok and capabilities[-1].name in STEPS:
        later = STEPS[STEPS.index(capabilities[-1].name) + 1 :]
        rows += [_CheckRow(capability_label(name), "not tried", "") for name in later]
    return rows


def config_rows(connection: Connection) -> list[tuple[str, str]]:
    """Return the config values of a connection that differ from the defaults, as label and value."""
    config = connection.config if isinstance(connection.config, dict) else {}
    return [(config_label(name), _shown(name, value)) for name, value in config.items()]


def access_summary(access: ConnectionAccess) -> _AccessSummary:
    """Return groups and users as text, with long lists truncated."""
    noun = "group" if len(access.groups) == 1 else "groups"
    return _AccessSummary(
        groups=f"{noun} {_truncated(access.groups)}" if access.groups else "",
        users=wording.counted(len(access.users), "user"),
        names=_truncated(access.users),
    )


def _truncated(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MAX_NAMES])
    return f"{shown} and {len(names) - _MAX_NAMES:,} more" if len(names) > _MAX_NAMES else shown


def _shown(name: str, value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if name.endswith("_bytes") and isinstance(value, int):
        return f"{value / 2**20:g}"
    return str(value)


def _next_sync(connection: Connection, now: datetime) -> str:
    """Return the time of the next scheduled sync; empty without a schedule or for a disabled connection."""
    if not connection.enabled or connection.sync_every_minutes is None:
        return ""
    if connection.next_sync_at is None or connection.next_sync_at <= now:
        return "due now"
    return f"in {time_left((connection.next_sync_at - now).total_seconds()).removesuffix(' left')}"
