"""What this version of CoreCube changes in an installation, before anything is changed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeVar

from django.db import ProgrammingError, transaction
from django.db.models import F, Sum

from corecube.models import Backup
from corecube.pending import PendingChange, pending_changes
from retrieval.encoders.embedders import choices
from retrieval.ingest.versions import OlderDocuments, older_documents
from retrieval.models import EmbeddingIndex, Sync

_RECENT: Final = 50  #: Syncs from which the speed of reading documents again is estimated.

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradePlan:
    """What an upgrade changes. None where an earlier schema does not tell."""

    changes: Sequence[PendingChange]
    documents: Sequence[OlderDocuments] | None  #: Those that the next full sync of each connection reads again.
    document_seconds: float | None  #: Seconds for one of them, by recent syncs; None without any.
    index: str | None  #: What the active embedding index and the settings require; empty for nothing.
    last_backup: datetime | None


def upgrade_plan() -> UpgradePlan:
    """Return what an upgrade of this database to this version changes; changes nothing."""
    return UpgradePlan(
        changes=pending_changes(),
        documents=_known(older_documents),
        document_seconds=_known(_document_seconds),
        index=_known(_index),
        last_backup=_known(_last_backup),
    )


def _known(read: Callable[[], _T]) -> _T | None:
    """Return what is read, None if the schema of an earlier version lacks its tables or columns."""
    try:
        with transaction.atomic():
            return read()
    except ProgrammingError:
        return None


def _document_seconds() -> float | None:
    written = Sync.objects.filter(finished_at__isnull=False, started_at__isnull=False, changed=0, added__gt=0)
    recent = written.order_by("-finished_at").values("pk")[:_RECENT]
    sums = Sync.objects.filter(pk__in=recent).aggregate(
        documents=Sum("added"), time=Sum(F("finished_at") - F("started_at"))
    )
    return sums["time"].total_seconds() / sums["documents"] if sums["documents"] else None


def _index() -> str:
    active = EmbeddingIndex.objects.filter(status=EmbeddingIndex.Status.ACTIVE)
    for number, model, source, pools in active.values_list("pk", "model", "source", "pools_windows"):
        if source != choices().configured().source:
            return f"Embedding index {number} has vectors of {model}; the settings name another model."
        if not pools:
            return f"Embedding index {number} cut long chunks; a new index embeds them as a whole."
    return ""


def _last_backup() -> datetime | None:
    good = Backup.objects.filter(finished_at__isnull=False, problem="").values_list("started_at", flat=True)
    return good.first()
