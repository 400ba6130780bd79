"""Judgments: people's grades of how well a passage answers a query."""

import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
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
MAX_EXPLANATION_LENGTH: Final = 500
GRADES: Final[Mapping[int, str]] = {0: "not relevant", 1: "related", 2: "answers in part", 3: "answers"}
_FINAL, _PERSON, _MODEL = Judgment.Source.FINAL, Judgment.Source.PERSON, Judgment.Source.MODEL
THUMB_GRADES: Final[Mapping[int, int]] = {1: 2, -1: 0}  #: The grade of a thumb on a cited passage: up or down.


class PassageId(NamedTuple):
    """What is judged: a text in a document, at any place in it."""

    document_id: UUID
    content_hash: str


@dataclass(frozen=True, slots=True)
class Graded:
    """The grades of one passage."""

    grade: int  #: The final grade, else the viewer's, else the lower median of the others'.
    own: int | None  #: The viewer's grade; None where they have not judged it.
    others: int
    is_final: bool = False  #: Whether an admin has decided between different grades.
    is_model: bool = False  #: Whether only a language model graded it.


def normalised_query(query: str) -> str:
    """Return a query as judgments store it: NFC, case folded, white space normalised, the first 500 characters."""
    folded = unicodedata.normalize("NFD", storable(query)).casefold()
    return " ".join(unicodedata.normalize("NFC", folded).split())[:MAX_QUERY_LENGTH].strip()


def passages_in(scope: AccessScope, document_ids: Iterable[UUID]) -> QuerySet[Chunk]:
    """Return the chunks of documents that are in scope."""
    return Chunk.objects.filter(document_id__in=list(document_ids), connection_id__in=scope.connection_ids)


def judge(
    query: str, passage: PassageId, *, grade: int | None, by: User, scope: AccessScope, explanation: str = ""
) -> None:
    """Store a grade, 0 to 3, or delete it for None; raise UnknownPassageError for a passage deleted or out of scope.

    An explanation is cut to 500 characters; without one, an earlier one stays.
    """
    key: dict[str, Any] = {"query": normalised_query(query), "by": by, "source": _PERSON}
    reason = storable(explanation).strip()[:MAX_EXPLANATION_LENGTH]
    with transaction.atomic():
        hold(passage, scope)
        if grade is None:
            Judgment.objects.filter(**key, **passage._asdict()).delete()
        else:
            explained = {"explanation": reason} if reason else {}
            Judgment.objects.update_or_create(**key, **passage._asdict(), defaults={"grade": grade, **explained})


def hold(passage: PassageId, scope: AccessScope) -> None:
    """Let a concurrent deletion of a passage's document wait for the transaction, and then delete what that stores.

    Raises UnknownPassageError for a passage deleted or out of scope.
    """
    Document.objects.in_scope(scope).select_for_update(no_key=True).filter(pk=passage.document_id).first()
    if not passages_in(scope, [passage.document_id]).filter(content_hash=passage.content_hash).exists():
        raise UnknownPassageError


def grades_of(query: str, *, viewer: User, scope: AccessScope, counts_model: bool = False) -> dict[PassageId, Graded]:
    """Return the grades of a query's passages in scope.

    A final grade counts, else the viewer's, else the lower median of the others', else, with `counts_model`, a language
    model's. A text that its document no longer contains has none.
    """
    sources = defaultdict[str, dict[PassageId, dict[int, int]]](lambda: defaultdict(dict))
    for passage, by, source, grade in _rows(query, scope):
        sources[source][passage][by] = grade
    final, people, model = (sources[it] for it in (_FINAL, _PERSON, _MODEL))
    found = {}
    for passage in {**final, **people, **(model if counts_model else {})}:
        others = dict(people.get(passage, {}))
        own = others.pop(viewer.pk, None)
        decided = next(iter(final.get(passage, {}).values()), own)
        is_model = decided is None and not others
        grade = median_low((model[passage] if is_model else others).values()) if decided is None else decided
        found[passage] = Graded(grade, own, len(others), passage in final, is_model)
    return found


def _rows(query: str, scope: AccessScope) -> Iterator[tuple[PassageId, int, str, int]]:
    """Yield a query's judgments in scope, the latest last: passage, who, source, grade."""
    judged = standing(scope).filter(query=normalised_query(query)).order_by("at")
    rows = judged.values_list("document_id", "content_hash", "by_id", "source", "grade")
    for document, digest, by, source, grade in rows:
        yield PassageId(document, digest), by, source, grade


def ranked_passages(outcome: SearchOutcome) -> tuple[PassageId, ...]:
    """Return the ranking of a search as passages."""
    hits = outcome.state.hits if outcome.state.access_checked else ()
    return tuple(PassageId(hit.chunk_id.document_id, hit.facts.content_hash) for hit in hits if hit.facts is not None)


def standing(scope: AccessScope) -> QuerySet[Judgment]:
    """Return the judgments of texts that are in the scope's documents now."""
    return Judgment.objects.filter(_is_current(scope), document__connection_id__in=scope.connection_ids)


def outdated(scope: AccessScope) -> QuerySet[Judgment]:
    """Return the judgments of texts that the scope's documents no longer have."""
    return Judgment.objects.filter(~_is_current(scope), document__connection_id__in=scope.connection_ids)


def _is_current(scope: AccessScope) -> Exists:
    same = {"document_id": OuterRef("document_id"), "content_hash": OuterRef("content_hash")}
    return Exists(Chunk.objects.filter(**same, connection_id__in=scope.connection_ids))
