"""What there is in a scope for a section to ask of: documents and chunks, counted as far as it matters."""

import json
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from corecube.scope import AccessScope
from retrieval.engine.state import RequestFilter
from retrieval.index.filters import filtered
from retrieval.index.reading import read
from retrieval.index.statements import statement

_DOCUMENTS: Final = statement("scope_documents")
_CHUNKS: Final = statement("scope_chunks")
_NAMED: Final = statement("named_documents")
_LAST: Final = statement("upkeep/last_searches")
#: How far back searches tell how a compartment fares, and how many of each are looked at.
_PERIOD: Final = timedelta(minutes=10)
_MAX_SEARCHES: Final = 100
#: Searches of a compartment from which on a share means something, and the share of them that makes it a failing one.
MIN_SEARCHES: Final = 5
FAILING_SHARE: Final = 0.5
#: What a search says that ran out of time, or that found nothing although everything was tried.
_TIMED_OUT: Final = ("deadline_exceeded_", "soft_cancelled_", "timed_out_")
_FAILED: Final = frozenset(
    {"dense_timeout", "bm25_timeout", "fulltext_timeout", "fallback_exhausted", "recovery_out_of_time"}
)


@dataclass(frozen=True, slots=True)
class ScopeCounts:
    """What a request's filter leaves of a scope."""

    documents: int  #: Counted up to one more than the number in question.
    #: By compartment; those of several compartments are counted up to a bound that all of them share.
    chunks: Counter[str] = field(default_factory=Counter)


def scope_counts(
    scope: AccessScope, request_filter: RequestFilter, *, max_documents: int, sparse_below: int, timeout_seconds: float
) -> ScopeCounts:
    """Return how much a filter leaves of a scope, counted up to one more than `max_documents` documents.

    Chunks are counted until one compartment must have `sparse_below`. Raises SearchTimeoutError.
    """
    # Kinds of content and quality belong to chunks: a document has some of each.
    of_documents = replace(request_filter, hint="", min_quality=0.0)
    parameters: dict[str, Any] = {"scope": scope.connection_ids, "limit": max_documents + 1}
    sql, parameters = filtered(_DOCUMENTS, parameters, of_documents, document="listed.id")
    documents = len(read(sql, parameters, timeout_seconds=timeout_seconds))
    compartments = {it.connection.id: it.connection.compartment for it in scope.included}
    parameters = {"scope": scope.connection_ids, "limit": sparse_below * len(set(compartments.values())) + 1}
    sql, parameters = filtered(_CHUNKS, parameters, request_filter)
    chunks = Counter(dict.fromkeys(compartments.values(), 0))
    for row in read(sql, parameters, timeout_seconds=timeout_seconds):
        chunks[compartments[row["connection_id"]]] += row["chunks"]
    return ScopeCounts(documents, chunks)


def named_documents(documents: Collection[UUID], *, scope: AccessScope, timeout_seconds: float) -> int:
    """Return how many of these documents are in scope; raise SearchTimeoutError."""
    parameters = {"documents": sorted(documents), "scope": scope.connection_ids}
    (row,) = read(_NAMED, parameters, timeout_seconds=timeout_seconds)
    return int(row["documents"])


def failing_compartments(scope: AccessScope, *, now: datetime, timeout_seconds: float) -> frozenset[str]:
    """Return the compartments in scope whose latest searches timed out or found nothing; raise SearchTimeoutError.

    Of all users: the state of a compartment is the same for everybody. Those with numbers or less time of the
    request's own are left out, so that nobody makes a compartment a failing one by asking for too much too soon.
    """
    own: dict[str, set[int]] = {}
    for inclusion in scope.included:
        own.setdefault(inclusion.connection.compartment, set()).add(inclusion.connection.id)
    compartments = json.dumps([sorted(ids) for ids in own.values()])
    parameters = {"compartments": compartments, "since": now - _PERIOD, "limit": _MAX_SEARCHES}
    failed: list[list[bool]] = [[] for _ in own]
    for row in read(_LAST, parameters, timeout_seconds=timeout_seconds):
        # Django's cursor hands binary JSON over as text.
        codes = json.loads(row["degraded"]) if isinstance(row["degraded"], str) else row["degraded"]
        listed = codes if isinstance(codes, list) else []
        failed[row["place"] - 1].append(any(it in _FAILED or it.startswith(_TIMED_OUT) for it in listed))
    return frozenset(name for name, outcomes in zip(own, failed, strict=True) if is_failing(outcomes))


def is_failing(outcomes: Sequence[bool]) -> bool:
    """Return whether so many of a compartment's searches failed that more is requested from it."""
    return len(outcomes) >= MIN_SEARCHES and sum(outcomes) >= FAILING_SHARE * len(outcomes)
