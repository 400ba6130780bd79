"""The questions about the sample company, as a question set with judgments by those who may read the answers."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from django.db import transaction

from corecube import audit
from corecube.access import Principal, scope_for
from corecube.models import User
from retrieval.evaluation.answers import Requirements, share_met
from retrieval.ingest.samples import Company
from retrieval.models import Case, Document, Judgment, QuestionSet
from retrieval.records.judgments import normalised_query, passages_in

_SLUG: Final = "sample-questions"
_NAME: Final = "Sample questions"
_ANSWERS: Final = 2  #: Grade of a document of the samples that answers a question, or a part of it.


@transaction.atomic
def add_sample_questions(company: Company) -> None:
    """Add the missing questions and judgments about the samples, which must be indexed.

    Of two questions with the same text, the one with an answer is added.
    """
    question_set, is_new = QuestionSet.objects.get_or_create(slug=_SLUG, defaults={"name": _NAME})
    if is_new:
        audit.record("question_set.created", actor=None, subject=_SLUG)
    users = User.objects.in_bulk({it["user"] for it in company.questions}, field_name="username")
    answerable_first = sorted(company.questions, key=lambda it: not it.get("answerable", True))
    cases = [_case(question_set, it, users[it["user"]]) for it in answerable_first]
    Case.objects.bulk_create(cases, ignore_conflicts=True)
    for user in users.values():
        own = [it for it in company.questions if it["user"] == user.username]
        Judgment.objects.bulk_create(_judgments(company, own, user), ignore_conflicts=True)


def remove_sample_questions() -> None:
    """Delete the set if no question is left in it: the questions are deleted with the sample users."""
    QuestionSet.objects.filter(slug=_SLUG, cases=None).delete()


def _case(question_set: QuestionSet, question: Mapping[str, Any], user: User) -> Case:
    return Case(
        question_set=question_set,
        query=question["text"],
        is_answerable=question.get("answerable", True),
        user=user,
        tags=[question["kind"]],
        answers=question.get("answers", []),
    )


def _judgments(company: Company, questions: Sequence[Mapping[str, Any]], user: User) -> Iterator[Judgment]:
    """Yield a judgment of each passage of the documents that are listed with a user's questions."""
    slugs = {row["path"]: row["slug"] for row in company.connections}
    scope = scope_for(Principal(user))
    in_scope = Document.objects.in_scope(scope).values_list("connection__slug", "external_id", "pk")
    documents = {(slug, name): pk for slug, name, pk in in_scope}
    for question in questions:
        for expected in question["expected"]:
            folder, _, name = expected["path"].partition("/")
            if (document := documents.get((slugs[folder], name))) is None:
                continue
            texts = dict(passages_in(scope, [document]).values_list("content_hash", "text"))
            for content_hash, text in texts.items():
                grade = _grade(expected["grade"], text, question.get("answers", ()))
                query = normalised_query(question["text"])
                yield Judgment(query=query, document_id=document, content_hash=content_hash, grade=grade, by=user)


def _grade(grade: int, text: str, answers: Requirements) -> int:
    """Return the grade of a passage: 3 with the whole answer, 2 with a part of it, 1 for others on the subject."""
    share = share_met(text, answers) if grade == _ANSWERS and answers else 0.0
    return 3 if share == 1 else 2 if share else 1
