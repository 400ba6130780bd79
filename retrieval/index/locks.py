"""Locks on documents, which hold their chunks and everything that is made of them until a transaction ends."""

from collections.abc import Iterable
from enum import StrEnum
from uuid import UUID

from django.db import connection


class Lock(StrEnum):
    """The strength of a lock, as PostgreSQL names it."""

    UPDATE = "UPDATE"  #: Nobody else holds the documents.
    NO_KEY_UPDATE = "NO KEY UPDATE"  #: Nobody else changes them.
    SHARE = "SHARE"  #: Nobody changes or deletes them; others may hold the same lock.
    KEY_SHARE = "KEY SHARE"  #: Nobody deletes them.


def lock_documents(ids: Iterable[UUID], lock: Lock) -> None:
    """Lock documents in the order of their ids, those that exist, in the caller's transaction.

    One statement each, sent together: a distributed database locks rows of one document at a time.
    """
    with connection.cursor() as cursor:
        cursor.executemany(
            f"SELECT FROM retrieval_document WHERE id = %s FOR {lock}", [(it,) for it in sorted(set(ids))]
        )
