"""The embedding indexes: one is searched, all are written; another takes over in one transaction."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Max
from django.utils import timezone

from corecube.database import instance_of
from corecube.errors import ConfigError
from retrieval.encoders import Encoder
from retrieval.encoders.embedders import choices
from retrieval.encoders.protocol import PassageEncoder
from retrieval.errors import IndexStateError
from retrieval.index.citus import index_bytes, is_distributed
from retrieval.index.reading import CompiledQuery, advisory_lock, changed, rows
from retrieval.index.scans import ScanChoice
from retrieval.index.statements import statement
from retrieval.index.store import VectorIndex
from retrieval.index.writer import create_vector_index
from retrieval.models import Embedding, EmbeddingIndex

_MISSING: Final = statement("upkeep/count_missing")
_BYTES: Final = statement("upkeep/index_bytes")
_Status = EmbeddingIndex.Status
_Mode = EmbeddingIndex.Mode
#: Key of the advisory lock between what stores vectors (shared) and what changes which indexes there are (alone).
_LOCK: Final = 7_302
_BUILD_LOCK_CLASS: Final = 7_303  #: First key of the advisory locks that keep two builds of one index apart.
_DROPPED_AT_ONCE: Final = 10_000
_WHOLE: Final = ScanChoice()


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an index is."""

    chunks: int
    missing: int
    rate: float  #: Chunks that building embeds a second; 0 while nothing is known.

    @property
    def done(self) -> int:
        """Chunks that have a vector."""
        return self.chunks - self.missing

    @property
    def seconds_left(self) -> float | None:
        """The time that the rest takes at this rate; None while nothing is known."""
        if not self.missing:
            return 0.0
        return self.missing / self.rate if self.rate else None


def ensure_index(encoder: Encoder) -> VectorIndex:
    """Return the active embedding index, made for this model, as the settings say, when there is none.

    Raises ConfigError if the active index has another model's vectors, or if the model cannot make vectors in
    the configured mode.
    """
    row = active_row()
    if row is None:
        with transaction.atomic(), alone():
            source, mode = choices().configured().source, settings.CORECUBE_EMBED_MODE
            row = active_row() or _made(encoder, source=source, mode=mode, status=_Status.ACTIVE, scan=_WHOLE)
    return same_model(row, encoder)


def start_index(encoder: Encoder, *, source: str, mode: str, scan: ScanChoice = _WHOLE) -> EmbeddingIndex:
    """Return a new, empty embedding index in addition to the active one, which syncs write from now on.

    Previous indexes are retained. Raises IndexStateError if there is no active index, if another one is not active yet,
    or if one has the same vectors and is walked by the same; ConfigError when the model does not allow mode or scan.
    """
    scan = scan.of(encoder)
    with transaction.atomic(), alone():
        indexes = all_indexes()
        if not indexes:
            raise IndexStateError("There is no embedding index yet: the first sync creates one.")
        for row in indexes:
            if row.status == _Status.BUILDING:
                raise IndexStateError(f"Embedding index {row.pk} is not active yet. Switch to it or drop it first.")
            walk = (row.scan, row.scan_dim, row.oversample)
            if is_made_by(row, encoder) and row.mode == mode and walk == (scan.scan, scan.dim, scan.oversample):
                raise IndexStateError(f"Embedding index {row.pk} ({row.status}) already uses this model.")
        return _made(encoder, source=source, mode=mode, status=_Status.BUILDING, scan=scan)


def activate(row: EmbeddingIndex) -> EmbeddingIndex:
    """Activate this index for new searches, in one transaction; the previous index is retained.

    Running searches finish with the previous index. Raises IndexStateError if the index is already active, or if
    chunks have no vector in it.
    """
    with transaction.atomic(), alone():
        row = existing(row.pk)
        if row.status == _Status.ACTIVE:
            raise IndexStateError("This embedding index is the active one.")
        if missing := progress(row).missing:
            raise IndexStateError(f"{missing} chunks have no vector in this embedding index yet.")
        now = timezone.now()
        EmbeddingIndex.objects.filter(status=_Status.ACTIVE).update(status=_Status.PREVIOUS, switched_at=now)
        row.status, row.switched_at, row.ready_at, row.problem = _Status.ACTIVE, now, now, ""
        row.save()
    return row


def forget_index(row: EmbeddingIndex) -> None:
    """Delete an index, and leave its vectors to `clear_dropped`; raise IndexStateError for the active one."""
    with transaction.atomic(), alone():
        row = existing(row.pk)
        if row.status == _Status.ACTIVE:
            raise IndexStateError("The active embedding index cannot be dropped; switch to another one first.")
        row.delete()


def clear_dropped() -> None:
    """Delete what dropped indexes left: HNSW indexes and vectors, a part at a time; a killed drop's too."""
    existing = set(EmbeddingIndex.objects.values_list("pk", flat=True))
    for number in _stored_indexes() - existing:
        changed(statement("upkeep/drop_hnsw") % {"index": int(number)})
        while changed(statement("upkeep/delete_vectors"), {"index": number, "limit": _DROPPED_AT_ONCE}):
            pass


def existing(pk: int) -> EmbeddingIndex:
    """Return an index and lock its row until the transaction ends; raise IndexStateError if it was deleted."""
    row = EmbeddingIndex.objects.select_for_update().filter(pk=pk).first()
    if row is None:
        raise IndexStateError(f"There is no embedding index {pk}.")
    return row


def active_row() -> EmbeddingIndex | None:
    """Return the index that is searched, None while there is none."""
    row = _active().first()
    return None if row is None else instance_of(EmbeddingIndex, row)[0]


@cache
def _active() -> CompiledQuery:
    return CompiledQuery(EmbeddingIndex.objects.filter(status=_Status.ACTIVE))


def all_indexes() -> list[EmbeddingIndex]:
    """Return all indexes, the active one first: vectors are stored in all of them."""
    return sorted(EmbeddingIndex.objects.order_by("pk"), key=lambda row: row.status != _Status.ACTIVE)


def progress(row: EmbeddingIndex) -> Progress:
    """Return how far an index is, counted from the tables."""
    ((chunks, missing),) = rows(_MISSING, {"index": row.pk})
    return Progress(chunks, missing, row.built / row.build_seconds if row.build_seconds else 0.0)


def hnsw_bytes(indexes: Sequence[EmbeddingIndex]) -> dict[int, int]:
    """Return the size of the HNSW index of each embedding index, by its key."""
    with connection.cursor() as cursor:
        if is_distributed(cursor):
            return {row.pk: index_bytes(f"retrieval_embedding_hnsw_{row.pk}") for row in indexes}
    return dict(rows(_BYTES, {"numbers": [row.pk for row in indexes]}))


def is_made_by(row: EmbeddingIndex, encoder: Encoder) -> bool:
    """Return whether this model made the index's vectors."""
    return (row.model, row.weights, row.dim) == (encoder.name, encoder.weights, encoder.dim)


def same_model(row: EmbeddingIndex, encoder: Encoder) -> VectorIndex:
    """Return the index for searching and writing; raise ConfigError unless this model made its vectors."""
    if not is_made_by(row, encoder):
        message = (
            f"The embedding index was built with {row.model} ({row.weights}, {row.dim} dimensions);"
            f" the current model is {encoder.name} ({encoder.weights}, {encoder.dim} dimensions)."
        )
        raise ConfigError(message)
    return searched(row)


def searched(row: EmbeddingIndex) -> VectorIndex:
    """Return what searching and writing need to know of an index."""
    return VectorIndex(row.pk, row.dim, row.scan, row.scan_dim, row.oversample)


def vectors_key(row: EmbeddingIndex) -> dict[str, Any]:
    """Return what two indexes must have in common for a chunk's vector to be the same in both."""
    names = ("model", "weights", "dim", "mode", "pools_windows")
    return {name: getattr(row, name) for name in names}


@contextmanager
def alone() -> Iterator[None]:
    """Keep everybody from storing vectors until the transaction ends, after what is being stored just now."""
    rows("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
    yield


def hold_indexes() -> frozenset[int]:
    """Keep the embedding indexes as they are until the transaction ends, and return their keys."""
    rows("SELECT pg_advisory_xact_lock_shared(%s)", [_LOCK])
    return frozenset(EmbeddingIndex.objects.values_list("pk", flat=True))


def only_builder(row: EmbeddingIndex) -> AbstractContextManager[bool]:
    """Lock the building of an index and yield True; yield False if another process has the lock.

    The database gives it up by itself when the process dies.
    """
    return advisory_lock(_BUILD_LOCK_CLASS, row.pk)


def _made(
    encoder: Encoder, *, source: str, mode: str, status: EmbeddingIndex.Status, scan: ScanChoice
) -> EmbeddingIndex:
    if mode == _Mode.LATE:
        problem = encoder.passages_problem if isinstance(encoder, PassageEncoder) else "It returns no token vectors."
        if problem:
            raise ConfigError(f"The model {encoder.name!r} does not support late chunking. {problem}")
    scan = scan.of(encoder)
    row = EmbeddingIndex.objects.create(
        model=encoder.name,
        weights=encoder.weights,
        dim=encoder.dim,
        source=source,
        mode=mode,
        scan=scan.scan,
        scan_dim=scan.dim,
        oversample=scan.oversample,
        status=status,
    )
    create_vector_index(searched(row))
    if not progress(row).missing:
        EmbeddingIndex.objects.filter(pk=row.pk).update(ready_at=timezone.now())
    return row


def _stored_indexes() -> set[int]:
    """Return the keys of the indexes that vectors are stored of: a few steps over the index, not a scan."""
    found: set[int] = set()
    remaining = Embedding.objects.order_by()
    while (highest := remaining.aggregate(highest=Max("index_id"))["highest"]) is not None:
        found.add(highest)
        remaining = remaining.filter(index_id__lt=highest)
    return found
