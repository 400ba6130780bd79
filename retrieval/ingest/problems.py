"""Problems: the items of a connection that could not be indexed at their last try.

An item that fails is counted by its sync and listed here in one transaction, so the two never differ. Connectors,
parsers and workers give each failure a stable reason, which decides what helps.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from django.db.models import QuerySet

from corecube.connectors.types import ItemError
from corecube.data import read_toml
from retrieval.errors import EncoderError, IngestError
from retrieval.ingest.sandbox.process import ParserStartError
from retrieval.models import Sync, SyncItem, SyncProblem

#: What helps, by whether another try can help while the source stays unchanged, and by reason.
_ADVICE: Final[Mapping[str, Mapping[str, str]]] = read_toml("retrieval.ingest", "problems.toml")
#: Reasons that may disappear without a change: the network, a server that is down or busy.
TRANSIENT: Final = frozenset(_ADVICE["automatic"])
PERMANENT: Final = frozenset(_ADVICE["never"])  #: Reasons that only a change in the source removes.
ADVICE: Final = {reason: advice for found in _ADVICE.values() for reason, advice in found.items()}


def reason_of(error: Exception) -> tuple[str, str]:
    """Return an error's stable reason and its message; for an unexpected error the message has only its type."""
    match error:
        case ItemError() | IngestError():
            return error.reason, str(error)
        case ParserStartError():
            return "parser", str(error)
        case EncoderError():
            return "embedding", str(error)
        case _:
            return "error", f"It could not be indexed ({type(error).__name__})."


def record_problems(failed: Iterable[SyncItem]) -> None:
    """List items that failed, and replace their earlier problems; those of a dry run are skipped."""
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


def clear_problems(connection_id: int, external_ids: Iterable[str]) -> None:
    """Delete the problems of items that are indexed now."""
    SyncProblem.objects.filter(connection_id=connection_id, external_id__in=external_ids).delete()


def retryable(items: QuerySet[SyncItem]) -> QuerySet[SyncItem]:
    """Return those items of ended syncs for which another try can help: they were listed, and the reason can change."""
    return items.filter(state=SyncItem.State.FAILED).exclude(item={}).exclude(reason__in=PERMANENT)


def advice(reason: str) -> str:
    """Return what a person can do about a failure; empty when only its message helps."""
    # An older release may have stored a reason that no longer exists.
    return ADVICE.get(reason, "")
