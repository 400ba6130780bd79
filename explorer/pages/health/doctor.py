"""What is wrong with an installation and how to mend it, on a page that can be sent to others.

It has numbers, CoreCube's own words and the names of listed models: no message of an error, no name, no address.
"""

import platform
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from pathlib import Path
from typing import Final

from django.conf import settings
from django.db import Error
from django.db.models import Sum
from django.utils import timezone

from corecube.checks import NO_ANSWER, check_server
from corecube.data import read_toml
from corecube.env import readings
from corecube.errors import CoreCubeError
from corecube.health import clock_lead_seconds, pending_migrations
from corecube.models import Connection
from corecube.process import cores
from explorer import wording
from explorer.pages.health.panels import HealthRow, disk_row, health_rows, part_row, queue_row, size
from retrieval.encoders.admission import memory
from retrieval.encoders.catalog import KNOWN_MODELS
from retrieval.encoders.manifest import model_names
from retrieval.encoders.model_table import MODEL_TABLE
from retrieval.ingest.jobs import STALLED, job_states
from retrieval.ingest.workers import lost_workers, messages_waiting
from retrieval.llm.clients import stored_models
from retrieval.llm.reachability import status_of
from retrieval.models import Document, Sync, SyncProblem, TermFrequency
from retrieval.operations.health import Part, checked_parts
from retrieval.operations.installation import Installation, disk, installation, versions

_ADVICE: Final = read_toml("explorer.pages.health", "advice.toml") | read_toml("explorer.pages.health", "doctor.toml")
_PART_SECONDS: Final = 20.0  #: A new process loads its models for the checks.
_CLOCK_SECONDS: Final = 5.0
#: Folders of an installation that are not measured by the database.
_FOLDERS: Final = ("models", "uploads", "sources", "bm25", "vectors", "queue", "log")
_BROKEN: Final = frozenset({STALLED, Sync.Status.FAILED.value, Sync.Status.STOPPED.value})
#: Rows whose details are always numbers, and those whose details are as long as nothing is wrong.
_NUMBERS: Final = frozenset({"replicas", "disk", "queue", "ingest", "migrations", "clock", "syncs", "debug", "server"})
_NUMBERS_IF_WELL: Final = frozenset({"database", "bm25", "vectors", "redis"})
#: Rows of `health_rows` about this process, which serves no searches.
_OF_A_SERVER: Final = frozenset({"load"})

Facts = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Report:
    """The state of an installation."""

    at: datetime
    rows: Sequence[HealthRow]
    facts: Facts  #: Values by section and name.

    @property
    def problems(self) -> list[HealthRow]:
        """What needs attention, failures first."""
        return sorted((row for row in self.rows if not row.is_well), key=lambda it: it.tone != "bad")


def examined() -> Report:
    """Return the state of this installation; without the database, of what can be seen without it."""
    parts, now = checked_parts(_PART_SECONDS), timezone.now()
    facts = _facts()
    rows = [*_server_rows(), *_settings_rows()]
    try:
        pending = pending_migrations()
    except (Error, CoreCubeError):
        rows += [HealthRow("database", "Database", "bad", "It does not answer."), *_rows_without_tables(parts)]
        return Report(now, rows, facts)
    rows.append(HealthRow("migrations", "Migrations", "bad" if pending else "good", f"{pending} pending."))
    if pending:
        return Report(now, [*rows, *_rows_without_tables(parts)], facts)
    rows += [*_rows_beside_health(now), *_well_worded(installation(parts), now)]
    return Report(now, rows, facts | {"store": _store_facts()})


def as_text(report: Report) -> str:
    """Return the report as lines: problems with what to do, then what is well, then the facts."""
    return "\n".join(_lines(report))


def as_json(report: Report) -> dict[str, object]:
    """Return the report for programs."""
    return {
        "at": report.at.isoformat(timespec="seconds"),
        "problems": len(report.problems),
        "parts": [
            {"key": row.key, "label": row.label, "status": row.status, "detail": row.detail, "advice": _advice(row)}
            for row in report.rows
        ],
        "facts": report.facts,
    }


def _lines(report: Report) -> Iterator[str]:
    problems = report.problems
    count = wording.counted(len(problems), "problem") if problems else "No problem"
    yield f"CoreCube {report.facts['versions']['CoreCube']}, {report.at:%Y-%m-%d %H:%M} UTC: {count}"
    for row in (*problems, *(row for row in report.rows if row.is_well)):
        yield f"{row.status:<8} {row.label}: {row.detail}".rstrip(": ")
        if advice := _advice(row):
            yield f"{'':<8} {advice}"
    for section, values in filter(itemgetter(1), report.facts.items()):
        yield f"\n{section.capitalize()}"
        width = max(map(len, values), default=0)
        yield from (f"  {name:<{width}}  {value}" for name, value in values.items())


def _advice(row: HealthRow) -> str:
    return "" if row.is_well else str(_ADVICE.get(row.key, {}).get("text", ""))


def _server_rows() -> Iterator[HealthRow]:
    """Yield why the server in DATABASE_URL cannot be used; its own messages contain addresses."""
    for problem in check_server(databases=["default"]):
        words = (problem.msg, problem.hint) if problem.id != NO_ANSWER else ("The server does not answer.",)
        yield HealthRow("server", "Database server", "bad", " ".join(filter(None, words)))


def _rows_beside_health(now: datetime) -> Iterator[HealthRow]:
    """Yield what the page *Health* does not show."""
    lead = clock_lead_seconds()
    tone = "warn" if abs(lead) > _CLOCK_SECONDS else "good"
    yield HealthRow("clock", "Clock", tone, f"{abs(lead):.0f} s from the database's.")
    states, problems = _sync_states(now), SyncProblem.objects.count()
    words = ", ".join(f"{count} {state}" for state, count in sorted(states.items())) or "none"
    detail = f"The last of each connection: {words}; {wording.counted(problems, 'document')} could not be indexed."
    yield HealthRow("syncs", "Syncs", "warn" if _BROKEN & states.keys() else "good", detail)


def _sync_states(now: datetime) -> Counter[str]:
    syncs = Sync.objects.exclude(kind=Sync.Kind.DRY_RUN).select_related("connection")
    latest = syncs.order_by("connection_id", "-queued_at").distinct("connection_id")
    return Counter(job.state for job in job_states(latest, now))


def _well_worded(found: Installation, now: datetime) -> Iterator[HealthRow]:
    """Yield the rows of the page *Health* with details that name nobody and nothing of the site."""
    alive = len(found.workers) - len(lost_workers(found.workers))
    seen = max((it.seen_at for it in found.workers), default=None)
    heartbeat = f", the last heartbeat {wording.ago(seen, now)}" if seen else ""
    states = Counter(status_of(it).state.value for it in stored_models())
    details = {
        "model": f"{_listed(found.model)}." if found.model else "",
        "index": f"{'Active' if found.index else 'None yet'}, {len(found.stuck)} stopped.",
        "reranker": "Configured." if found.reranker else "None.",
        "workers": f"{alive} of {len(found.workers)} alive{heartbeat}.",
        "language_model": ", ".join(f"{count} {state}" for state, count in sorted(states.items())) or "None.",
    }
    for row in health_rows(found, now):
        if row.key not in _OF_A_SERVER:
            is_safe = row.key in _NUMBERS or (row.is_well and row.key in _NUMBERS_IF_WELL)
            yield HealthRow(row.key, row.label, row.tone, row.detail if is_safe else details.get(row.key, ""))


def _rows_without_tables(parts: Mapping[str, Part]) -> list[HealthRow]:
    return [part_row("redis", "Redis", Part(parts["redis"].state), ""), queue_row(messages_waiting()), disk_row(disk())]


def _settings_rows() -> Iterator[HealthRow]:
    if settings.DEBUG:
        yield HealthRow("debug", "Debug mode", "warn", "On.")


def _facts() -> dict[str, Mapping[str, str]]:
    names = [_listed(name) for name in model_names(settings.CORECUBE_MODELS_DIR)]
    changed = {it.name: it.value if it.is_plain else "set" for it in readings() if it.is_locked}
    return {
        "versions": versions(),
        "machine": {
            "system": f"{platform.system()} {platform.machine()}",
            "cores": str(cores()),
            "memory": size(memory().limit),
            "database": "embedded" if settings.DATABASES["default"]["ENGINE"] == "corecube.embedded" else "own server",
            "queue": "Redis" if settings.REDIS_URL else "files",
        },
        "models": {name: f"{count} on this machine" for name, count in sorted(Counter(names).items())},
        "folders": {name: size(_bytes(settings.CORECUBE_VAR_DIR / name)) for name in _FOLDERS},
        "settings": changed,
    }


def _store_facts() -> dict[str, str]:
    chunks = TermFrequency.objects.filter(lexeme="").aggregate(sum=Sum("chunks"))["sum"] or 0
    counts = {"connections": Connection.objects.count(), "documents": Document.objects.count(), "chunks": chunks}
    return {name: f"{count:,}" for name, count in counts.items()}


def _listed(name: str) -> str:
    return name if name in KNOWN_MODELS or name in MODEL_TABLE else "another model"


def _bytes(folder: Path) -> int:
    return sum(it.lstat().st_size for it in folder.rglob("*") if it.is_file())
