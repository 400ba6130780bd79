"""Judgments: people's grades of how well a passage answers a query."""

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median_low
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from corecube.models import User
from corecube.sanitise import storable
from corecube.scope import AccessScope
from retrieval.errors import UnknownPassageError
from retrieval.models import Chunk, Document, Judgment
from retrieval.search.outcome import SearchOutcome

MAX_QUERY_LENGTH: Final = 500  #: Characters of a query that are stored: retrieval uses no more.
GRADES: Final[Mapping[int, str]] = {0: "not relevant", 1: "related", 2: "answers in part", 3: "answers"}
THUMB_GRADES: Final[Mapping[int, int]] = {1: 2, -1: 0}  #: The grade of a thumb on a cited passage: up or down.


class PassageId(NamedTuple):
    """What is judged: a text in a document, at any place in it."""

    document_id: UUID
    content_hash: str


@dataclass(frozen=True, slots=True)
class Graded:
    """The grades of one passage."""

    grade: int  #: The viewer's grade, or without one the lower median of the others'.
    own: int | None  #: The viewer's grade; None where they have not judged it.
    others: int


def normalised_query(query: str) -> str:
    """Return a query as judgments store it: NFC, case folded, white space normalised, the first 500 characters."""
    folded = unicodedata.normalize("NFD", storable(query)).casefold()
    return " ".join(unicodedata.normalize("NFC", folded).split())[:MAX_QUERY_LENGTH].strip()


def passages_in(scope: AccessScope, document_ids: Iterable[UUID]) -> QuerySet[Chunk]:
    """Return the chunks of documents that are in scope."""
    return Chunk.objects.filter(document_id__in=list(document_ids), connection_id__in=scope.connection_ids)


def judge(query: str, passage: PassageId, *, grade: int | None, by: User, scope: AccessScope) -> None:
    """Store a grade, 0 to 3, or delete it for None; raise UnknownPassageError for a passage deleted or out of scope."""
    with transaction.atomic():
        # A concurrent deletion of the document waits, and deletes the judgment too.
        Document.objects.in_scope(scope).select_for_update(no_key=True).filter(pk=passage.document_id).first()
        if not passages_in(scope, [passage.document_id]).filter(content_hash=passage.content_hash).exists():
            raise UnknownPassageError
        key: dict[str, Any] = {
            "query": normalised_query(query),
            "document_id": passage.document_id,
            "content_hash": passage.content_hash,
            "by": by,
        }
        if grade is None:
            Judgment.objects.filter(**key).delete()
        else:
            Judgment.objects.update_or_create(**key, defaults={"grade": grade})


def grades_of(query: str, *, viewer: User, scope: AccessScope) -> dict[PassageId, Graded]:
    """Return the grades of a query's passages in scope.

    The viewer's grade counts, else the lower median of the others'. A text that its document no longer contains has
    none.
    """
    grades: dict[PassageId, dict[int, int]] = {}
    rows = (
        standing(scope)
        .filter(query=normalised_query(query))
        .values_list("document_id", "content_hash", "by_id", "grade")
    )
    for document_id, content_hash, by, grade in rows:
        grades.setdefault(PassageId(document_id, content_hash), {})[by] = grade
    found = {}
    for passage, by_person in grades.items():
        own = by_person.pop(viewer.pk, None)
        others = list(by_person.values())
        found[passage] = Graded(median_low(others) if own is None else own, own, len(others))
    return found


def ranked_passages(outcome: SearchOutcome) -> tuple[PassageId, ...]:
    """Return the ranking of a search as passages."""
    hits = outcome.state.hits if outcome.state.access_checked else ()
    return tuple(PassageId(hit.chunk_id.document_id, hit.facts.content_hash) for hit in hits if hit.facts is not None)


def standing(scope: AccessScope) -> QuerySet[Judgment]:
    """Return the judgments of texts that are in the scope's documents now."""
    here = Chunk.objects.filter(
        document_id=OuterRef("document_id"),
        content_hash=OuterRef("content_hash"),
        connection_id__in=scope.connection_ids,
    )
    return Judgment.objects.filter(Exists(here), document__connection_id__in=scope.connection_ids)
