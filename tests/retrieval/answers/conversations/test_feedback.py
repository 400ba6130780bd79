import pytest

from corecube.errors import ConflictError, InvalidRequestError
from corecube.models import Connection
from retrieval.answers.conversations.asking import ask, rate_answer, rate_citation, start
from retrieval.errors import UnknownPassageError
from retrieval.models import Judgment, Message, SearchRecord


def test_a_thumb_for_an_answer_reaches_the_query_log(talk):
    answer = talk("bob")
    for rating in (1, -1, None):
        rate_answer(answer, rating)
        assert Message.objects.get(pk=answer.pk).feedback == SearchRecord.objects.get().feedback == rating


def test_a_thumb_for_a_citation_is_a_judgment_of_its_passage(talk, world):
    answer = talk("bob")
    for rating, grade in ((1, 2), (-1, 0)):
        rate_citation(answer, 1, rating)
        row = Judgment.objects.get()
        assert (row.grade, row.by, row.query) == (grade, world.bob, "how do i roll back the staging database?")
        assert row.content_hash == answer.passages[0]["content_hash"]
        assert Message.objects.get(pk=answer.pk).citation_feedback == {"1": rating}
    rate_citation(answer, 1, None)
    assert not Judgment.objects.exists()
    assert Message.objects.get(pk=answer.pk).citation_feedback == {}


def test_a_follow_up_is_judged_for_what_was_searched_for(answered, world):
    conversation = start(world.bob)
    answered(conversation, "What does error Q-4711 mean?")
    rate_citation(answered(conversation, "How long does it take?"), 1, 1)
    assert Judgment.objects.get().query.startswith("how long does it take? (error q-4711")


def test_nothing_is_judged_where_no_text_of_queries_is_kept(talk, settings):
    answer = talk("bob")
    settings.CORECUBE_KEEP_QUERY_TEXT = False
    rate_citation(answer, 1, 1)
    assert not Judgment.objects.exists()
    assert Message.objects.get(pk=answer.pk).citation_feedback == {"1": 1}


def test_a_passage_that_may_not_be_seen_any_more_or_never_was_cannot_be_judged(talk, world):
    answer = talk("bob")
    with pytest.raises(UnknownPassageError):
        rate_citation(answer, 99, 1)
    Connection.objects.filter(pk=world.runbooks.pk).update(enabled=False)
    with pytest.raises(UnknownPassageError):
        rate_citation(answer, 1, 1)
    assert not Judgment.objects.exists()


@pytest.mark.parametrize("rating", [0, 2, -5])
def test_other_ratings_are_refused(talk, rating):
    with pytest.raises(InvalidRequestError):
        rate_answer(talk("bob"), rating)


def test_an_unfinished_answer_is_not_rated(world):
    with pytest.raises(ConflictError):
        rate_answer(ask(start(world.bob), "rollback"), 1)
