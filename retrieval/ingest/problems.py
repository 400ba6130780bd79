"""Problems: the items of a connection that could not be taken in when they were last tried.

An item that fails is counted by its sync and listed here in one transaction, so the two never differ.
"""

from collections.abc import Iterable

from django.db.models import QuerySet

from corecube.connectors import ItemError
from retrieval.errors import EncoderError, IngestError
from retrieval.ingest.reasons import PERMANENT
from retrieval.ingest.sandbox.process import ParserStartError
from retrieval.models import Sync, SyncItem, SyncProblem


def reason_of(error: Exception) -> tuple[str, str]:
    """Return an error's stable word and its message; of one that nobody foresaw only the type."""
    match error:
        case ItemError() | IngestError():
            return error.reason, str(error)
        case ParserStartError():
            return "parser", str(error)
        case EncoderError():
            return "embedding", str(error)
        case _:
            return "error", f"It could not be taken in ({type(error).__name__})."


def note_problems(failed: Iterable[SyncItem]) -> None:
    """List items that failed, in place of what was listed of them before; a dry run's are left out."""
    problems = [
        SyncProblem(
            connection_id=item.sync.connection_id,
            external_id=item.external_id,
            reason=item.reason,
            message=item.message,
        )
        for item in failed
        if item.sync.kind != Sync.Kind.DRY_RUN
    ]
    SyncProblem.objects.bulk_create(
        problems,
        update_conflicts=True,
        unique_fields=["connection", "external_id"],
        update_fields=["reason", "message", "seen_at"],
    )


def solve_problems(connection_id: int, external_ids: Iterable[str]) -> None:
    """Take items off the list that are taken in."""
    SyncProblem.objects.filter(connection_id=connection_id, external_id__in=external_ids).delete()


def keep_problems_of(sync: Sync) -> None:
    """Take off the list what a sync of the whole source did not fail at: it is taken in by now, or gone."""
    failed = sync.items.filter(state=SyncItem.State.FAILED)
    SyncProblem.objects.filter(connection=sync.connection).exclude(
        external_id__in=failed.values("external_id")
    ).delete()


def retryable(items: QuerySet[SyncItem]) -> QuerySet[SyncItem]:
    """Return those items of ended syncs for which another try can help: the source listed them, and it may pass."""
    return items.filter(state=SyncItem.State.FAILED).exclude(item={}).exclude(reason__in=PERMANENT)
