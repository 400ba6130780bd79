"""Health: the state of each part, the load, and the settings."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from explorer import wording
from explorer.components.bars import percent
from explorer.wording import WORDS
from retrieval.encoders.admission import IngestLoad
from retrieval.engine.admission import Load
from retrieval.engine.admission_ladder import Ladder, LadderConfig, PoolConfig, Refusal, Rung
from retrieval.index.following import ReadModelStatus
from retrieval.ingest.workers import lost_workers
from retrieval.models import Worker
from retrieval.operations.backups import BackupStatus
from retrieval.operations.health import Part, State
from retrieval.operations.installation import Disk, Installation

_RUNGS: Final = WORDS["admission_rungs"]
_TIGHT: Final = 0.9  #: Share of memory in use from which ingestion runs with the minimum of calls.
_GIB: Final = 2**30
_TONES: Final = {State.OK: "good", State.DEGRADED: "warn", State.FAILED: "bad"}
_STATUSES: Final = {"good": "ok", "off": "not set up", "warn": "warning", "bad": "failed"}
_LOW_SPACE: Final = 0.1  #: Free shares of the disk below which the state is a warning or failed.
_NO_SPACE: Final = 0.03
_MANY_WAITING: Final = 100  #: Waiting messages from which the state is a warning.
_UNITS: Final = ("bytes", "KB", "MB", "GB", "TB")
_STEP: Final = 1000
_REDIS: Final = "Processes share caches, circuit breakers and limits."
_NO_REDIS: Final = "Each process has its own caches, circuit breakers and limits."
_NO_RERANKER: Final = "Searches are ranked without one."
_NO_LANGUAGE_MODEL: Final = "No language model is enabled: answers quote the documents."
_NO_READ_MODEL: Final = "Not used on this machine."


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure with its label."""

    label: str
    value: str
    address: str = ""
    key: str = ""  #: Stable, for tests.


def load_panel(load: Load, ingest: IngestLoad, *, refused_early: int = 0) -> dict[str, Any]:
    """Return the panel of these figures; `refused_early` counts API requests that were refused unread."""
    by_reason = [(it.value, WORDS["admission_refusals"][it], load.refused.get(it, 0)) for it in Refusal]
    by_reason.append(("door", "too many open requests", refused_early))
    return {
        "share": round(percent(load.active, load.connections), 2),
        "tone": load_tone(load),
        "summary": f"Searches use {load.active} of {load.connections} connections: {_RUNGS[load.rung]}.",
        "marks": tuple(_marks(load)),
        "figures": tuple(_figures(load, ingest)),
        "refusals": tuple(
            Figure(words.capitalize(), f"{count:,}", key=key) for key, words, count in by_reason if count
        ),
    }


def load_tone(load: Load) -> str:
    """Return "good" below all thresholds, "bad" for a full pool, else "warn"."""
    if load.rung is Rung.FULL:
        return "bad"
    return "good" if load.rung is Rung.CALM else "warn"


def load_words(load: Load) -> str:
    """Return the load as text."""
    pool = f"Searches use {load.active} of {load.connections} connections, {_RUNGS[load.rung]}"
    slots = f"{load.held} of {load.slots} search slots in use, {load.waiting} waiting."
    cut = f" The server supports fewer than the configured {load.wished} connections." if _is_pool_cut(load) else ""
    return f"{pool}; {slots}{cut}"


def _is_pool_cut(load: Load) -> bool:
    return load.connections < load.wished


def ingest_words(load: IngestLoad) -> str:
    """Return the limit of parallel embedding calls, and the memory in use."""
    calls = f"A sync may run {load.allowed} of {load.configured} embedding calls in parallel"
    memory = load.memory
    if not memory.limit:
        return f"{calls}; memory usage unknown."
    sizes = f"{memory.in_use / _GIB:.1f} of {memory.limit / _GIB:.1f} GiB"
    return f"{calls}; {memory.pressure * 100:.0f} % of memory in use ({sizes})."


def is_memory_tight(load: IngestLoad) -> bool:
    """Return whether ingestion runs with the minimum of calls because of memory."""
    return load.memory.pressure >= _TIGHT


def _marks(load: Load) -> Iterator[tuple[float, int, str]]:
    config = LadderConfig()
    ladder = Ladder(PoolConfig(), config, load.connections)
    shares = (
        (config.triage, Rung.TRIAGE),
        (config.hard_reject, Rung.HARD_REJECT),
        (config.short_budget_reject, Rung.SHORT_BUDGET),
        (config.recovery_skip, Rung.RECOVERY_SKIP),
    )
    for share, rung in shares:
        connections = ladder.rung(share)
        yield round(percent(connections, load.connections), 2), connections, _RUNGS[rung]


def _figures(load: Load, ingest: IngestLoad) -> Iterator[Figure]:
    yield Figure("Search slots in use", f"{load.held} of {load.slots}", key="slots")
    yield Figure("Searches waiting", str(load.waiting), key="waiting")
    yield Figure("Recovery slots in use", f"{load.recovery_held} of {load.recovery_slots}", key="recovery")
    yield Figure("Admitted", f"{load.admitted:,}", key="admitted")
    yield Figure("Rejected", f"{sum(load.refused.values()):,}", key="refused")
    yield Figure("Recovery skipped", f"{load.recovery_skipped:,}", key="skipped")
    yield Figure("Maximum wait", f"{load.max_wait_seconds:.1f} s", key="longest")
    yield Figure("Embedding calls", f"{ingest.allowed} of {ingest.configured}", key="ingest")
    yield Figure("Memory in use", f"{ingest.memory.pressure * 100:.0f} %", key="memory")


@dataclass(frozen=True, slots=True)
class HealthRow:
    """One part."""

    key: str  #: Stable, for links and tests.
    label: str
    tone: str  #: good, off, warn or bad.
    detail: str

    @property
    def status(self) -> str:
        """The tone as text."""
        return _STATUSES[self.tone]

    @property
    def is_well(self) -> bool:
        """Whether it needs no attention."""
        return self.tone in {"good", "off"}


def health_rows(found: Installation, now: datetime) -> tuple[HealthRow, ...]:
    """Return all parts of the installation, each after those it depends on."""
    tone = "warn" if is_memory_tight(found.ingest) else "good"
    return (
        _database(found),
        *_replicas(found),
        part_row("model", "Embedding model", found.parts["model"], f"{found.model} is available."),
        _index(found),
        part_row("reranker", "Reranker", found.parts["reranker"], found.reranker, _NO_RERANKER),
        _read_model("bm25", "BM25 index", found),
        _read_model("vectors", "Vector files", found),
        part_row(
            "language_model",
            "Language models",
            found.parts["language_model"],
            found.language_models,
            _NO_LANGUAGE_MODEL,
        ),
        part_row("redis", "Redis", found.parts["redis"], _REDIS if found.has_redis else "", _NO_REDIS),
        _backup(found.backups, now),
        _load(found),
        HealthRow("ingest", "Ingestion memory", tone, ingest_words(found.ingest)),
        _workers(found.workers, now),
        queue_row(found.waiting),
        disk_row(found.disk),
    )


def overall(rows: Sequence[HealthRow]) -> HealthRow:
    """Return one row for all: the worst tone, and the parts that need attention."""
    tone = next((it for it in ("bad", "warn") if any(row.tone == it for row in rows)), "good")
    unwell = [row for row in rows if not row.is_well]
    detail = f"Needs attention: {', '.join(row.label for row in unwell)}." if unwell else "All components are working."
    return HealthRow("overall", "Installation", tone, detail)


def size(count: int) -> str:
    """Return bytes in the unit that fits: "512 bytes", "1.4 MB", "120 GB"."""
    value, unit = float(count), 0
    while value >= _STEP and unit < len(_UNITS) - 1:
        value, unit = value / _STEP, unit + 1
    return f"{value:.1f} {_UNITS[unit]}" if unit and value < 100 else f"{value:.0f} {_UNITS[unit]}"  # noqa: PLR2004 -- three digits


def part_row(key: str, label: str, part: Part, detail: str, without: str = "") -> HealthRow:
    """Return the state of a checked part: the reason if something is wrong, else the detail.

    A part with an empty detail is not set up, and `without` says what follows.
    """
    tone = "off" if without and not detail and part.state is State.OK else _TONES[part.state]
    return HealthRow(key, label, tone, part.reason or detail or without)


def _replicas(found: Installation) -> Iterator[HealthRow]:
    if part := found.parts.get("replicas"):
        yield part_row("replicas", "Read replicas", part, "Searches read documents from them.")


def _database(found: Installation) -> HealthRow:
    facts = found.database
    pool = found.pool
    words = (
        f"PostgreSQL {facts.server} with pgvector {facts.pgvector}",
        size(facts.bytes),
        f"{facts.connections} of {facts.max_connections} connections",
        f"{pool['pool_size']} of {pool['pool_max']} in this process" if pool else "",
    )
    return part_row("database", "Database", found.parts["database"], f"{', '.join(filter(None, words))}.")


def _index(found: Installation) -> HealthRow:
    label = "Embedding index"
    if found.stuck:
        row = found.stuck[0]
        return HealthRow("index", label, "warn", f"The build of index {row.pk} stopped: {row.problem}")
    if found.index is None:
        return HealthRow("index", label, "good", "None yet. The first sync creates one.")
    return HealthRow("index", label, "good", f"Index {found.index.pk} with {found.index.model} is active.")


def _read_model(key: str, label: str, found: Installation) -> HealthRow:
    return part_row(key, label, found.parts[key], _read_model_words(found.read_models.get(key)), _NO_READ_MODEL)


def _read_model_words(status: ReadModelStatus | None) -> str:
    if status is None or not status.is_enabled:
        return ""
    if not status.is_due:
        return "None yet. The first sync creates it."
    lag = status.lag
    behind = (
        f"{wording.counted(lag.transactions, 'transaction')} or {lag.seconds:.0f} s behind" if lag.transactions else ""
    )
    return f"{wording.counted(status.chunks, 'chunk')}, {size(status.bytes)}, {behind or 'up to date'}."


def _backup(status: BackupStatus, now: datetime) -> HealthRow:
    good = status.last_good
    if good:
        detail = f"The last one was made {wording.ago(good.started_at, now)}: {good.name}, {size(good.size)}."
    else:
        detail = "None yet." if status.is_scheduled else "None. Set CORECUBE_BACKUP_TO, or run manage.py backup."
    words = f"{status.problem} {detail}" if status.problem else detail
    tone = "warn" if status.problem else "good" if good or status.is_scheduled else "off"
    return HealthRow("backup", "Backup", tone, words)


def _load(found: Installation) -> HealthRow:
    tone = load_tone(found.load)
    tone = "warn" if tone == "good" and _is_pool_cut(found.load) else tone
    return HealthRow("load", "Load", tone, load_words(found.load))


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


def disk_row(disk: Disk) -> HealthRow:
    """Return the state of the data directory's disk."""
    tone = "bad" if disk.free_share < _NO_SPACE else "warn" if disk.free_share < _LOW_SPACE else "good"
    return HealthRow("disk", "Disk", tone, f"{size(disk.free)} free of {size(disk.total)} in the data directory.")


def queue_row(waiting: int | None) -> HealthRow:
    """Return the state of the queue with this many messages, None if it does not respond."""
    if waiting is None:
        return HealthRow("queue", "Queue", "warn", "The queue does not respond. Workers poll the database meanwhile.")
    tone = "warn" if waiting >= _MANY_WAITING else "good"
    return HealthRow("queue", "Queue", tone, f"{wording.counted(waiting, 'message')} waiting for a worker.")
