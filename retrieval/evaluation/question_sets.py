"""Question sets: add, mark and delete cases; every change is an audit event."""

from typing import Final

from django.db import transaction
from django.utils.text import slugify

from corecube import audit
from corecube.errors import InvalidRequestError
from corecube.models import User
from corecube.sanitise import storable
from retrieval.models import Case, QuestionSet, SearchRecord
from retrieval.records.judgments import MAX_QUERY_LENGTH

MAX_CASES: Final = 5000
_MAX_NAME_LENGTH: Final = 120
_MAX_SLUG_LENGTH: Final = 50


def set_named(name: str, *, actor: User) -> QuestionSet:
    """Return the set with a name, created if missing; raise InvalidRequestError for an invalid name."""
    name = " ".join(storable(name).split())[:_MAX_NAME_LENGTH]
    slug = slugify(name)[:_MAX_SLUG_LENGTH].strip("-_")
    if not slug:
        raise InvalidRequestError("The name of a question set needs a letter or a digit.")
    with transaction.atomic():
        found, is_new = QuestionSet.objects.get_or_create(slug=slug, defaults={"name": name})
        if is_new:
            audit.record("question_set.created", actor=actor, subject=slug)
    return found


def save_case(
    question_set: QuestionSet,
    query: str,
    *,
    actor: User,
    is_answerable: bool = True,
    record: SearchRecord | None = None,
) -> tuple[Case, bool]:
    """Add a question to a set, and return its case and whether it is new; an existing case is not changed.

    Raises InvalidRequestError for an empty question, and for a full set.
    """
    query = cut(query)
    if not query:
        raise InvalidRequestError("A case needs a question.")
    with transaction.atomic():
        QuestionSet.objects.select_for_update().get(pk=question_set.pk)
        if found := question_set.cases.filter(query=query).first():
            return found, False
        if question_set.cases.count() >= MAX_CASES:
            raise InvalidRequestError(f"The maximum of a question set is {MAX_CASES:,} cases.")
        case = Case.objects.create(
            question_set=question_set, query=query, is_answerable=is_answerable, record=record, created_by=actor
        )
        audit.record("case.saved", actor=actor, subject=question_set.slug, case=str(case.pk))
    return case, True


def mark_case(case: Case, *, is_answerable: bool, actor: User) -> None:
    """Set whether the documents answer a case's question."""
    case.is_answerable = is_answerable
    case.save(update_fields=["is_answerable"])
    audit.record(
        "case.marked", actor=actor, subject=case.question_set.slug, case=str(case.pk), is_answerable=is_answerable
    )


def delete_case(case: Case, *, actor: User) -> None:
    """Delete a case; the judgments of its question stay."""
    audit.record("case.deleted", actor=actor, subject=case.question_set.slug, case=str(case.pk))
    case.delete()


def delete_set(question_set: QuestionSet, *, actor: User) -> None:
    """Delete a set with its cases; the judgments of their questions stay."""
    with transaction.atomic():
        audit.record("question_set.deleted", actor=actor, subject=question_set.slug, cases=question_set.cases.count())
        question_set.delete()


def cut(query: str) -> str:
    """Return a question as stored in a case: trimmed, and cut to the maximum query length."""
    return storable(query).strip()[:MAX_QUERY_LENGTH].strip()
