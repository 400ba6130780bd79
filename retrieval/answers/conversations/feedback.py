"""Ratings of answers and of their cited passages."""

from uuid import UUID

from django.conf import settings
from django.db import transaction

from corecube.access import Principal, scope_for
from corecube.errors import ConflictError, InvalidRequestError
from retrieval.answers.conversations.asking import UNFINISHED, question_of
from retrieval.errors import UnknownPassageError
from retrieval.models import Message, SearchRecord
from retrieval.records.judgments import THUMB_GRADES, PassageId, judge


def rate_answer(answer: Message, rating: int | None) -> None:
    """Store a rating of an answer, 1 or -1, also with its search for the query log; None deletes it.

    Raises InvalidRequestError for another rating, and ConflictError for an unfinished answer.
    """
    _check(answer, rating)
    Message.objects.filter(pk=answer.pk).update(feedback=rating)
    if answer.record_id is not None:
        SearchRecord.objects.filter(pk=answer.record_id).update(feedback=rating)


def rate_citation(answer: Message, number: int, rating: int | None) -> None:
    """Store a rating of a passage, which also counts as a judgment; None deletes both.

    There is no judgment if the installation does not store query texts. Raises InvalidRequestError, ConflictError, and
    UnknownPassageError for a passage that no longer exists or that the user can no longer see.
    """
    _check(answer, rating)
    passage = next((it for it in answer.passages if it["number"] == number), None)
    if passage is None:
        raise UnknownPassageError
    user = answer.conversation.user
    scope = scope_for(Principal(user))
    if not scope.allows(passage["connection"]):
        raise UnknownPassageError
    if settings.CORECUBE_KEEP_QUERY_TEXT:
        question = question_of(answer)
        judged = PassageId(UUID(passage["document"]), passage["content_hash"])
        grade = None if rating is None else THUMB_GRADES[rating]
        judge(question.standalone or question.text, judged, grade=grade, by=user, scope=scope)
    with transaction.atomic():
        locked = Message.objects.select_for_update().get(pk=answer.pk)
        others = {key: value for key, value in locked.citation_feedback.items() if key != str(number)}
        locked.citation_feedback = others if rating is None else {**others, str(number): rating}
        locked.save(update_fields=["citation_feedback"])


def _check(answer: Message, rating: int | None) -> None:
    if rating not in {None, *THUMB_GRADES}:
        raise InvalidRequestError("A rating must be 1 or -1.")
    if answer.state in UNFINISHED:
        raise ConflictError("The answer is not finished.")
