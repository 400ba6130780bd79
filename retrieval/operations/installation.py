"""What the installation runs on, gathered for whoever looks after it."""

import platform
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Final

from django.conf import settings
from django.utils import timezone

from corecube.health import DatabaseFacts, database_facts, pool_figures
from corecube.version import VERSION
from retrieval.encoders.admission import IngestLoad, ingest_load
from retrieval.engine.admission import Load
from retrieval.index import active
from retrieval.index.bm25.status import Bm25Status, bm25_status
from retrieval.index.embedding_index import active_row
from retrieval.ingest.workers import messages_waiting
from retrieval.llm.environment import stored_models
from retrieval.llm.reachability import status_of, status_words
from retrieval.models import EmbeddingIndex, Worker
from retrieval.operations.health import Part, State, checked_parts
from retrieval.search import runtime

_PACKAGES: Final = ("django", "celery", "psycopg", "onnxruntime", "tokenizers", "tantivy")


@dataclass(frozen=True, slots=True)
class Disk:
    """The disk that the installation's data lies on, in bytes."""

    total: int
    free: int

    @property
    def free_share(self) -> float:
        """What is free, 0 to 1."""
        return self.free / self.total if self.total else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """Everything that is known of the parts and of what they run on."""

    parts: Mapping[str, Part]
    database: DatabaseFacts
    pool: Mapping[str, int]
    #: Name of the model that searches use, and of the reranker; empty where there is none.
    model: str
    reranker: str
    index: EmbeddingIndex | None
    #: Indexes whose building stopped.
    stuck: Sequence[EmbeddingIndex]
    workers: Sequence[Worker]
    #: Messages for workers that nobody has taken; None when the queue does not answer.
    waiting: int | None
    disk: Disk
    #: What this process has at work, and what was turned away.
    load: Load
    ingest: IngestLoad
    #: What is known of the language models that can be asked, in sentences.
    language_models: str = ""
    #: The BM25 index of this machine; None where it cannot be looked at.
    bm25: Bm25Status | None = None
    versions: Mapping[str, str] = field(default_factory=dict)


def installation() -> Installation:
    """Look at every part, in a fixed number of statements. Raises what the driver raises when the database is down."""
    parts = checked_parts()
    database = database_facts()
    usage = shutil.disk_usage(settings.CORECUBE_VAR_DIR)
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
        disk=Disk(usage.total, usage.free),
        load=runtime.admission().load(),
        ingest=ingest_load(settings.CORECUBE_EMBED_CONCURRENCY),
        language_models=_language_models(),
        bm25=bm25_status(),
        versions=_versions(database),
    )


def _language_models() -> str:
    now = timezone.now()
    enabled = [model for model in stored_models() if model.is_enabled]
    known = [f"{model.name} {status_words(status_of(model), now)}" for model in enabled]
    return " ".join(known) or "None is enabled: answers quote the passages."


def _reranker_name() -> str:
    try:
        reranker = runtime.reranker()
    except Exception:  # noqa: BLE001 -- the part says what is wrong with it
        return str(settings.CORECUBE_RERANKER)
    return reranker.name if reranker else ""


def _versions(database: DatabaseFacts) -> Mapping[str, str]:
    return {
        "CoreCube": VERSION,
        "Python": platform.python_version(),
        "PostgreSQL": database.server,
        "pgvector": database.pgvector,
        **{name: version(name) for name in _PACKAGES},
    }
