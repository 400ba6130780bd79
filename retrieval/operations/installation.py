"""The state of the installation for its administrators."""

import platform
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from typing import Final

from django.conf import settings
from django.utils import timezone

from corecube.health import DatabaseFacts, database_facts, pool_figures
from corecube.shared_state.store import shared
from corecube.version import VERSION
from retrieval.encoders.admission import IngestLoad, ingest_load
from retrieval.engine.admission import Load
from retrieval.index import active
from retrieval.index.bm25 import follower as bm25
from retrieval.index.embedding_index import active_row
from retrieval.index.following import ReadModelStatus
from retrieval.index.vectors import follower as vectors
from retrieval.ingest.workers import messages_waiting
from retrieval.llm.clients import stored_models
from retrieval.llm.reachability import status_of, status_words
from retrieval.models import EmbeddingIndex, Worker
from retrieval.operations.backups import BackupStatus, backup_status
from retrieval.operations.health import Part, State, checked_parts
from retrieval.search import runtime

_PACKAGES: Final = ("django", "celery", "psycopg", "onnxruntime", "tokenizers", "tantivy", "numkong")


@dataclass(frozen=True, slots=True)
class Disk:
    """The disk of the installation's data, in bytes."""

    total: int
    free: int

    @property
    def free_share(self) -> float:
        """The free share, 0 to 1."""
        return self.free / self.total if self.total else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """The state of all parts and of their environment."""

    parts: Mapping[str, Part]
    database: DatabaseFacts
    pool: Mapping[str, int]
    model: str  #: Names of the embedding model and of the reranker of searches; empty for none.
    reranker: str
    index: EmbeddingIndex | None
    stuck: Sequence[EmbeddingIndex]
    workers: Sequence[Worker]
    waiting: int | None  #: Messages waiting for a worker; None if the queue does not respond.
    disk: Disk
    load: Load  #: Running and rejected searches of this process.
    ingest: IngestLoad
    backups: BackupStatus
    language_models: str = ""  #: The status of the enabled language models, in sentences; empty for none.
    read_models: Mapping[str, ReadModelStatus] = field(default_factory=dict)  #: Of this machine, by their parts.
    has_redis: bool = False  #: Whether processes share state in Redis.
    versions: Mapping[str, str] = field(default_factory=dict)


def installation(parts: Mapping[str, Part] | None = None) -> Installation:
    """Check every part, or take its state from `parts`, with a fixed number of statements.

    Raises the driver's error if the database is down.
    """
    parts = parts or checked_parts()
    database, now = database_facts(), timezone.now()
    models = [f"{it.name} {status_words(status_of(it), now)}" for it in stored_models() if it.is_enabled]
    return Installation(
        parts=parts,
        database=database,
        pool=pool_figures(),
        model=active.encoder().name if parts["model"].state is State.OK else "",
        reranker=_reranker_name(),
        index=active_row(),
        stuck=list(EmbeddingIndex.objects.exclude(problem="")),
        workers=list(Worker.objects.all()),
        waiting=messages_waiting(),
        disk=disk(),
        load=runtime.admission().load(),
        backups=backup_status(),
        ingest=ingest_load(settings.CORECUBE_EMBED_CONCURRENCY),
        language_models=" ".join(models),
        read_models={name: it.follower().status() for name, it in (("bm25", bm25), ("vectors", vectors))},
        has_redis=shared() is not None,
        versions={**versions(), "PostgreSQL": database.server, "pgvector": database.pgvector},
    )


@cache
def versions() -> Mapping[str, str]:
    """Return the versions of CoreCube, of Python and of the main packages, which the process has loaded."""
    return {"CoreCube": VERSION, "Python": platform.python_version(), **{name: version(name) for name in _PACKAGES}}


def disk() -> Disk:
    """Return the disk of the data directory."""
    usage = shutil.disk_usage(settings.CORECUBE_VAR_DIR)
    return Disk(usage.total, usage.free)


def _reranker_name() -> str:
    try:
        reranker = runtime.reranker()
    except Exception:  # noqa: BLE001 -- the health of the part reports the error
        return str(settings.CORECUBE_RERANKER)
    return reranker.name if reranker else ""
