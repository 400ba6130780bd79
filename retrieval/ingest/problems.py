"""Problems: the items of a connection that could not be indexed at their last try.

An item that fails is counted by its sync and listed here in one transaction, so the two never differ. Connectors,
parsers and workers give each failure a stable reason, which decides what helps.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final

from django.db.models import QuerySet

from corecube.connectors.types import ItemError
from retrieval.errors import EncoderError, IngestError
from retrieval.ingest.sandbox.process import ParserStartError
from retrieval.models import Sync, SyncItem, SyncProblem

_AUTOMATIC: Final = (
    ("unreachable", "Check the network between this server and the source."),
    ("timeout", ""),
    ("unavailable", ""),
    ("embedding", "Check the embedding model on the Health page."),
    ("parser", "Check the memory of the machine that the worker runs on."),
)
_BY_HAND: Final = (
    ("too_slow", "Raise CORECUBE_PARSE_SECONDS or split the file, then try again."),
    ("lost", "Check the memory of the machine that the worker runs on, then try again."),
    ("error", "Check the worker's log for this time."),
)
_NEVER: Final = (
    ("archived", "Restore the object and sync again."),
    ("bad_address", "Correct the address in the source or in the connection and sync again."),
    ("bad_name", "Rename the item and sync again."),
    ("corrupt", "Replace the file with one that opens and sync again."),
    ("duplicate", "Give each item its own id and sync again."),
    ("empty", "Add text to the file, or exclude it from the connection."),
    ("encoding", "Save the file as UTF-8 and sync again."),
    ("encrypted", "Remove the password and sync again."),
    ("gone", "The source no longer has it; the next sync removes it."),
    ("left_out", "Change the connection's patterns and sync again."),
    ("lfs_pointer", "Commit the file itself to the repository, or exclude it from the connection."),
    ("no_text", "Run text recognition (OCR) on the scan and sync again."),
    ("not_allowed", "Move the file below one of CORECUBE_FOLDER_ROOTS, or exclude it from the connection."),
    ("not_a_file", "Exclude it from the connection."),
    ("page_limit", "Raise the connection's page limit and sync again."),
    ("private_address", "Only public internet addresses are fetched; exclude it from the connection."),
    ("redirect", "Correct the address in the source and sync again."),
    ("refused", "Grant the connection's account access to it and sync again."),
    ("restricted", "Allow restricted pages in the connection, or ignore this problem."),
    ("submodule", ""),
    ("symlink", "Replace the link with the file itself and sync again."),
    ("too_large", "Split the file and sync again, or raise the limit if the message names a setting."),
    ("unreadable", "Allow CoreCube to read it and sync again."),
    ("unsupported_type", "Save it in a supported format, or exclude it from the connection."),
)
#: Reasons that may disappear without a change: the network, a server that is down or busy.
TRANSIENT: Final = frozenset(dict(_AUTOMATIC))
PERMANENT: Final = frozenset(dict(_NEVER))  #: Reasons that only a change in the source removes.


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


class Retry(Enum):
    """Whether another try can help while the source stays unchanged."""

    AUTOMATIC = "automatic"  #: Workers try again; after their last try a person may.
    BY_HAND = "by_hand"  #: It may help, for instance after a change of this installation; a person decides.
    NEVER = "never"  #: Only a change in the source helps, and the next sync finds it.


@dataclass(frozen=True, slots=True)
class Failure:
    """Whether to retry after a failure, and what helps."""

    retry: Retry
    advice: str = ""  #: What helps, as a sentence; empty where the message contains it.


FAILURES: Final[Mapping[str, Failure]] = MappingProxyType(
    {
        **{reason: Failure(Retry.AUTOMATIC, advice) for reason, advice in _AUTOMATIC},
        **{reason: Failure(Retry.BY_HAND, advice) for reason, advice in _BY_HAND},
        **{reason: Failure(Retry.NEVER, advice) for reason, advice in _NEVER},
    }
)
_UNKNOWN: Final = Failure(Retry.BY_HAND)  #: An older release may have stored a reason that no longer exists.


def advice(reason: str) -> str:
    """Return what a person can do about a failure; empty when only its message helps."""
    return FAILURES.get(reason, _UNKNOWN).advice
