"""Following the outbox: which documents changed, in the order of transactions, and what read models hold of them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from corecube.scope import AccessScope
from retrieval.index.citus import await_commits
from retrieval.index.reading import fetch, rows
from retrieval.index.statements import prepared, statement
from retrieval.index.types import ChunkTexts
from retrieval.models import OutboxEntry, ReadModel, SearchRecord

_CHANGED: Final = prepared("changed_documents")
_ENTRIES: Final = statement("upkeep/outbox_entries")
_WAITING: Final = statement("upkeep/outbox_waiting")
_PRUNE: Final = statement("upkeep/prune_outbox")
_TEXTS: Final = statement("upkeep/chunk_texts")
_VECTORS: Final = statement("upkeep/chunk_vectors")
_HISTORY: Final = statement("upkeep/history")
_MARK: Final = statement("upkeep/outbox_mark")
_HORIZON: Final = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint"
_CURRENT: Final = "SELECT pg_current_xact_id()::text::bigint"
_NEWEST: Final = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
MAX_CHANGED: Final = 200  #: Changed documents that a search reads beside a read model that lacks them.
MAX_COUNTED: Final = 10_000  #: Maximum number of counted pending changes of a follower.
_MAX_PRUNED: Final = 5_000
_PRUNED: Final = "outbox"  #: The row that says up to which transaction changes are forgotten.
#: Changes are not retained for a read model on a machine that is inactive for longer; it is rebuilt when it returns.
_SILENT: Final = timedelta(days=7)
_SIGN_OF_LIFE: Final = timedelta(minutes=1)
#: Days for which a search can be compared with the changes since it, if searches are never deleted.
_COMPARED_DAYS: Final = 90


@dataclass(frozen=True, slots=True)
class Lag:
    """What a follower has not got yet."""

    transactions: int  #: At most `MAX_COUNTED` changes are counted.
    seconds: float  #: Since the first of them was written; 0 when there is none.


@dataclass(frozen=True, slots=True)
class Mark:
    """What had changed in some connections at a moment; another one later is equal while nothing has changed since."""

    before: int  #: The transaction before which every one had ended.
    changes: int  #: Changes of that transaction or a later one that could be seen.


def mark(connection_ids: Sequence[int], *, since: Mark | None = None) -> Mark:
    """Return what has changed by now in some connections; `since` is the earlier mark that it is compared with.

    A transaction that had written before the earlier mark, and ends after it, counts as a change.
    """
    given = {"before": since.before if since else None, "connections": list(connection_ids)}
    ((before, changes),) = rows(_MARK, given)
    return Mark(int(before), int(changes))


def horizon() -> int:
    """Return the transaction id before which every transaction has ended; a transaction of one's own counts.

    What they wrote can be read, on shards too: there it waits until it can.
    """
    before = int(_value(_HORIZON))
    await_commits()
    return before


def newest() -> int:
    """Return the transaction id that no transaction has reached yet."""
    return int(_value(_NEWEST))


def history() -> str:
    """Return what identifies this database and its history among all databases."""
    return _value(_HISTORY)


def known_history() -> str:
    """Return the history of this database, which never changes: a process reads it once."""
    return _known_history(str(connection.settings_dict["NAME"]))


@cache
def _known_history(database: str) -> str:  # noqa: ARG001 -- the key of the cache
    return history()


def entries(*, after: int, before: int, limit: int) -> list[tuple[UUID, int]]:
    """Return the documents and transactions of the next changes between two, about `limit`: all of each transaction."""
    found = rows(_ENTRIES, {"after": after, "before": before, "limit": limit})
    return [(document, transaction) for document, transaction in found]


def changed_after(position: int, documents: Collection[UUID]) -> set[UUID]:
    """Return which of these documents changed in a transaction after one."""
    found = OutboxEntry.objects.filter(transaction_id__gt=position, document_id__in=documents)
    return set(found.values_list("document_id", flat=True))


def changed_in_scope(position: int, *, scope: AccessScope, timeout_seconds: float) -> list[str] | None:
    """Return the ids of the documents in scope that changed in a transaction after `position`.

    None for more than 200 documents, and if some changes since then were deleted. Raises SearchTimeoutError.
    """
    given = {"position": position, "max_changed": MAX_CHANGED, "scope": scope.connection_ids}
    ((changed, lacks),) = fetch(_CHANGED, given, timeout_seconds=timeout_seconds)[1]
    return None if lacks or len(changed) > MAX_CHANGED else list(changed)


def lag(position: int) -> Lag:
    """Return what came after a transaction."""
    ((transactions, seconds),) = rows(_WAITING, {"after": position, "limit": MAX_COUNTED})
    return Lag(int(transactions), max(0.0, float(seconds)))


def chunk_texts(documents: Sequence[UUID], languages: Mapping[int, str]) -> list[ChunkTexts]:
    """Return the chunks that documents have now; `languages` by connection, where it is not the installation's."""
    default = settings.CORECUBE_TEXT_SEARCH_CONFIG
    found = rows(_TEXTS, {"documents": list(documents)})
    return [ChunkTexts(languages.get(row[2]) or default, *row) for row in found]


def chunk_vectors(documents: Sequence[UUID], index: int) -> list[tuple[int, UUID, int, bytes]]:
    """Return the vectors that documents' chunks have now in an embedding index, ordered by connection.

    Each with its connection, document and ordinal, in PostgreSQL's binary form.
    """
    found = rows(_VECTORS, {"index": index, "documents": list(documents)})
    return [(connection_id, document, ordinal, bytes(vector)) for connection_id, document, ordinal, vector in found]


def follows(name: str, position: int) -> None:
    """Note that a follower has every change up to a transaction, and is alive: the latter once a minute."""
    now = timezone.now()
    if not ReadModel.objects.filter(name=name, transaction_id=position, at__gt=now - _SIGN_OF_LIFE).exists():
        ReadModel.objects.update_or_create(name=name, defaults={"transaction_id": position, "at": now})


def pruned_up_to() -> int:
    """Return the newest transaction with deleted changes; a follower before it cannot catch up."""
    row = ReadModel.objects.filter(name=_PRUNED).first()
    return row.transaction_id if row else 0


def prune(limit: int = _MAX_PRUNED) -> int:
    """Delete changes that every follower has and no stored search is compared with; return how many.

    If searches are never deleted, those older than 90 days are no longer compared, since changes are deleted.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        ReadModel.objects.exclude(name=_PRUNED).filter(at__lt=timezone.now() - _SILENT).delete()
        until = min(_needed_from(), horizon()) - 1
        cursor.execute(_PRUNE, {"until": until, "limit": limit})
        count, newest_gone = cursor.fetchone()
        if count:
            ReadModel.objects.update_or_create(
                name=_PRUNED, defaults={"transaction_id": max(newest_gone, pruned_up_to()), "at": timezone.now()}
            )
    return int(count)


def forget_all() -> None:
    """Forget all changes and followers, as in a database whose content was replaced: every read model is rebuilt."""
    with transaction.atomic():
        OutboxEntry.objects.all().delete()
        ReadModel.objects.all().delete()
        SearchRecord.objects.filter(transaction_id__isnull=False).update(transaction_id=None)
        now = int(_value(_CURRENT))
        ReadModel.objects.create(name=_PRUNED, transaction_id=now, at=timezone.now())


def _needed_from() -> int:
    """Return the first transaction whose changes a follower lacks or a search record may be compared with."""
    positions = ReadModel.objects.exclude(name=_PRUNED).values_list("transaction_id", flat=True)
    since = timezone.now() - timedelta(days=settings.CORECUBE_KEEP_SEARCHES_DAYS or _COMPARED_DAYS)
    oldest = SearchRecord.objects.filter(transaction_id__isnull=False, at__gte=since).order_by("at")
    searched = oldest.values_list("transaction_id", flat=True)[:1]
    needed = (*(it + 1 for it in positions), *(it + 1 for it in searched if it is not None))
    return min(needed, default=horizon())


def _value(sql: str) -> str:
    ((value,),) = rows(sql)
    return str(value)
