"""Changes of embedding indexes by admins: each is recorded in the audit log, and building is queued."""

from functools import partial

from django.conf import settings
from django.db import transaction

from corecube import audit
from corecube.database import first_or
from corecube.models import User
from retrieval.encoders.embedders import Choice, choices
from retrieval.errors import IndexStateError
from retrieval.index import active, embedding_index
from retrieval.index.scans import ScanChoice
from retrieval.ingest.index_tasks import build, clear
from retrieval.ingest.tasks import wake_workers
from retrieval.models import EmbeddingIndex


def start_index(
    choice: Choice, *, actor: User | None, mode: str = "", scan: ScanChoice | None = None, queue: bool = True
) -> EmbeddingIndex:
    """Add an index with this model to the active one, and queue its build; `scan` None searches full vectors.

    Raises IndexStateError when it cannot be added, EncoderError or ConfigError when the model cannot be used.
    """
    encoder = choice.load()
    with transaction.atomic():
        row = embedding_index.start_index(
            encoder,
            source=choice.source,
            mode=mode or settings.CORECUBE_EMBED_MODE,
            scan=ScanChoice() if scan is None else scan,
        )
        facts = {"model": row.model, "dim": row.dim, "mode": row.mode, "scan": row.scan}
        audit.record("index.started", actor=actor, subject=str(row.pk), **facts)
        if queue:
            transaction.on_commit(partial(build.delay, row.pk))
    return row


def switch_to(row: EmbeddingIndex, *, actor: User | None) -> EmbeddingIndex:
    """Make this index the active one; raise IndexStateError when it is not complete, EncoderError, ConfigError."""
    active.encoder_of(row)
    with transaction.atomic():
        row = embedding_index.activate(row)
        audit.record("index.switched", actor=actor, subject=str(row.pk), model=row.model, dim=row.dim)
        # Sentences of the other model; until they are there, words select quotes.
        transaction.on_commit(wake_workers)
    return row


def roll_back(*, actor: User | None) -> EmbeddingIndex:
    """Make the previous index the active one again; raise IndexStateError when it no longer exists."""
    previous = EmbeddingIndex.objects.filter(status=EmbeddingIndex.Status.PREVIOUS).order_by("-switched_at")
    return switch_to(first_or(IndexStateError("There is no previous embedding index."), previous), actor=actor)


def drop(row: EmbeddingIndex, *, actor: User | None, queue: bool = False) -> None:
    """Delete an index with its vectors, or queue their deletion; raise IndexStateError for the active one."""
    with transaction.atomic():
        subject, model, dim = str(row.pk), row.model, row.dim
        embedding_index.forget_index(row)
        audit.record("index.dropped", actor=actor, subject=subject, model=model, dim=dim)
        if queue:
            transaction.on_commit(clear.delay)
    if not queue:
        embedding_index.clear_dropped()


def build_again(row: EmbeddingIndex, *, actor: User | None) -> None:
    """Queue the build of an index that stopped; raise IndexStateError for a complete one."""
    if row.ready_at is not None and row.pools_windows:
        raise IndexStateError("This embedding index is complete.")
    with transaction.atomic():
        audit.record("index.queued", actor=actor, subject=str(row.pk), model=row.model, dim=row.dim)
        transaction.on_commit(partial(build.delay, row.pk))


def chosen(*, model: str = "", dim: int = 0, next_service: bool = False) -> Choice:
    """Return the requested model: a folder, the next service, or else the configured one."""
    if next_service:
        return choices().next()
    return choices().local(model, dim) if model else choices().configured()
