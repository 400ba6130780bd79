"""Health: the state of each part, and the settings."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from corecube.env import Reading
from explorer import wording
from explorer.pages.health.load import ingest_words, is_memory_tight, is_pool_cut, load_tone, load_words
from retrieval.index.bm25.status import Bm25Status
from retrieval.ingest.workers import lost_workers
from retrieval.models import Worker
from retrieval.operations.health import Part, State
from retrieval.operations.installation import Disk, Installation

_TONES: Final = {State.OK: "good", State.DEGRADED: "warn", State.FAILED: "bad"}
_STATUSES: Final = {"good": "ok", "warn": "warning", "bad": "failed"}
#: Free shares of the disk below which the state is a warning or failed.
_LOW_SPACE: Final = 0.1
_NO_SPACE: Final = 0.03
#: Waiting messages from which the state is a warning.
_MANY_WAITING: Final = 100
_UNITS: Final = ("bytes", "KB", "MB", "GB", "TB")
_STEP: Final = 1000


@dataclass(frozen=True, slots=True)
class HealthRow:
    """One part."""

    #: Stable, for links and tests.
    key: str
    label: str
    #: good, warn or bad.
    tone: str
    detail: str

    @property
    def status(self) -> str:
        """The tone as text."""
        return _STATUSES[self.tone]

    @property
    def is_well(self) -> bool:
        """Whether it needs no attention."""
        return self.tone == "good"


def health_rows(found: Installation, now: datetime) -> tuple[HealthRow, ...]:
    """Return all parts of the installation, each after those it depends on."""
    return (
        _database(found),
        _part("model", "Embedding model", found.parts["model"], f"{found.model} is available."),
        _index(found),
        _part("reranker", "Reranker", found.parts["reranker"], found.reranker or "Not configured."),
        _part("bm25", "BM25 index", found.parts["bm25"], _bm25(found.bm25)),
        _part("language_model", "Language models", found.parts["language_model"], found.language_models),
        _load(found),
        _ingest(found),
        _workers(found.workers, now),
        _queue(found.waiting),
        _disk(found.disk),
    )


def overall(rows: Sequence[HealthRow]) -> HealthRow:
    """Return one row for all: the worst tone, and the parts that need attention."""
    tone = next((it for it in ("bad", "warn") if any(row.tone == it for row in rows)), "good")
    unwell = [row for row in rows if not row.is_well]
    detail = f"Needs attention: {', '.join(row.label for row in unwell)}." if unwell else "All parts work."
    return HealthRow("overall", "Installation", tone, detail)


def size(count: int) -> str:
    """Return bytes in the unit that fits: "512 bytes", "1.4 MB", "120 GB"."""
    value, unit = float(count), 0
    while value >= _STEP and unit < len(_UNITS) - 1:
        value, unit = value / _STEP, unit + 1
    return f"{value:.1f} {_UNITS[unit]}" if unit and value < 100 else f"{value:.0f} {_UNITS[unit]}"  # noqa: PLR2004 -- three digits


def _part(key: str, label: str, part: Part, detail: str) -> HealthRow:
    return HealthRow(key, label, _TONES[part.state], part.reason or detail)


def _database(found: Installation) -> HealthRow:
    facts = found.database
    pool = found.pool
    words = (
        f"PostgreSQL {facts.server} with pgvector {facts.pgvector}",
        size(facts.bytes),
        f"{facts.connections} of {facts.max_connections} connections",
        f"{pool['pool_size']} of {pool['pool_max']} in this process" if pool else "",
    )
    return _part("database", "Database", found.parts["database"], f"{', '.join(filter(None, words))}.")


def _index(found: Installation) -> HealthRow:
    label = "Embedding index"
    if found.stuck:
        row = found.stuck[0]
        return HealthRow("index", label, "warn", f"The build of index {row.pk} stopped: {row.problem}")
    if found.index is None:
        return HealthRow("index", label, "good", "None yet. The first sync creates one.")
    return HealthRow("index", label, "good", f"Index {found.index.pk} with {found.index.model} is active.")


def _bm25(status: Bm25Status | None) -> str:
    """Return size and lag of a working BM25 index."""
    if status is None or not status.is_kept:
        return "Not used on this machine."
    lag = status.lag
    behind = (
        f"{wording.counted(lag.transactions, 'transaction')} or {lag.seconds:.0f} s behind" if lag.transactions else ""
    )
    return f"{wording.counted(status.chunks, 'chunk')}, {size(status.bytes)}, {behind or 'up to date'}."


def _load(found: Installation) -> HealthRow:
    tone = load_tone(found.load)
    tone = "warn" if tone == "good" and is_pool_cut(found.load) else tone
    return HealthRow("load", "Load", tone, load_words(found.load))


def _ingest(found: Installation) -> HealthRow:
    tone = "warn" if is_memory_tight(found.ingest) else "good"
    return HealthRow("ingest", "Ingestion memory", tone, ingest_words(found.ingest))


def _workers(workers: Sequence[Worker], now: datetime) -> HealthRow:
    silent = lost_workers(workers)
    alive = [worker for worker in workers if worker not in silent]
    if not alive:
        since = max((worker.seen_at for worker in workers), default=None)
        last = f" The last one was active {wording.ago(since, now)}." if since else ""
        return HealthRow("workers", "Workers", "bad", f"No worker is running.{last} Syncs are waiting.")
    names = ", ".join(f"{it.host}:{it.pid}, started {wording.ago(it.started_at, now)}" for it in alive)
    lost_ones = f"; {wording.counted(len(silent), 'other')} stopped responding within the last hour" if silent else ""
    return HealthRow("workers", "Workers", "good", f"{wording.counted(len(alive), 'worker')}: {names}{lost_ones}.")


def _queue(waiting: int | None) -> HealthRow:
    if waiting is None:
        return HealthRow("queue", "Queue", "warn", "The queue does not respond. Workers poll the database meanwhile.")
    tone = "warn" if waiting >= _MANY_WAITING else "good"
    return HealthRow("queue", "Queue", tone, f"{wording.counted(waiting, 'message')} waiting for a worker.")


def _disk(disk: Disk) -> HealthRow:
    tone = "bad" if disk.free_share < _NO_SPACE else "warn" if disk.free_share < _LOW_SPACE else "good"
    return HealthRow("disk", "Disk", tone, f"{size(disk.free)} free of {size(disk.total)} in the data directory.")


@dataclass(frozen=True, slots=True)
class SettingRow:
    """A setting with its value."""

    name: str
    value: str
    #: "environment", "file", "default".
    origin: str
    #: Set by the environment, so that the console cannot change it.
    is_locked: bool


def setting_rows(readings: Sequence[Reading]) -> Iterator[SettingRow]:
    """Yield all settings by name."""
    return (SettingRow(it.name, it.value, it.origin.value, it.is_locked) for it in readings)
