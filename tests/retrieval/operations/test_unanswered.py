"""Refused questions by topic."""

from datetime import timedelta

import pytest
from django.utils import timezone

from corecube.access import scope_for
from retrieval.models import Document, SearchRecord
from retrieval.operations.unanswered import Topic, topics, unanswered, unanswered_questions

ASKED = (
    *["How many holidays do we have?"] * 3,
    "Can I carry over a holiday?",
    "Who approves holidays in Basel?",
    "Where is the Basel office?",
    "What does a parking space in Basel cost?",
    "Is there a canteen?",
)


def test_each_question_is_in_the_topic_that_most_questions_share():
    # "holiday" is in three of the seven different questions, "basel" in three too, but one of them is taken by then.
    assert topics(ASKED, limit=5) == (
        Topic("holiday", 5, (ASKED[0], "Can I carry over a holiday?", "Who approves holidays in Basel?")),
        Topic("basel", 2, ("Where is the Basel office?", "What does a parking space in Basel cost?")),
        Topic("", 1, ("Is there a canteen?",)),
    )


def test_what_is_beyond_the_limit_is_in_no_topic():
    assert topics(ASKED, limit=1)[1] == Topic("", 3, ASKED[-3:])


@pytest.mark.parametrize("asked", [(), ("", " ")])
def test_without_questions_there_are_no_topics(asked):
    assert topics([it for it in asked if it.strip()], limit=5) == ()


def test_a_question_alone_and_words_of_every_question_are_no_topic():
    assert topics(("What is the plan?", "What is the price?"), limit=5) == (
        Topic("", 2, ("What is the plan?", "What is the price?")),
    )


@pytest.mark.django_db
def test_refusals_of_the_period_are_read_where_their_text_is_stored():
    for query, is_refused in (("a", True), ("b", False), ("", True), ("old", True)):
        SearchRecord.objects.create(
            preset="corecube", milliseconds=1, hit_count=0, query=query, is_refused=is_refused, surface="chat"
        )
    # Trials in the console, also as somebody else, are no questions.
    for facts in ({"surface": "explorer"}, {"surface": "chat", "for_another": True}):
        SearchRecord.objects.create(preset="corecube", milliseconds=1, hit_count=0, query="c", is_refused=True, **facts)
    liked = {"surface": "chat", "verdict": "partial", "feedback": 1}
    SearchRecord.objects.create(preset="corecube", milliseconds=1, hit_count=1, query="liked", **liked)
    SearchRecord.objects.filter(query="old").update(at=timezone.now() - timedelta(days=8))
    assert unanswered_questions(timezone.now() - timedelta(days=7)) == ["a"]


def test_a_topic_has_the_documents_that_came_nearest_within_the_readers_scope(world):
    rollback, queues, costs = (
        Document.objects.get(external_id=name) for name in ("rollback.md", "queues.txt", "rollback-costs.md")
    )
    for query, verdict, near in (
        ("Rollback of production?", "not_answerable", (rollback, costs)),
        ("rollback price", "partial", (costs, rollback)),
        ("rollback price", "partial", (costs,)),
        ("answered rollback", "answerable", (queues,)),
    ):
        SearchRecord.objects.create(
            preset="corecube",
            milliseconds=1,
            hit_count=1,
            query=query,
            verdict=verdict,
            surface="api",
            trace={"ranking": [[f"{it.pk}:0", "hash"] for it in near]},
        )
    since = timezone.now() - timedelta(days=7)

    def nearest(person):
        ((found),) = unanswered(since, scope=scope_for(world.principal(person)), limit=5)
        assert (found.topic.term, found.topic.count) == ("rollback", 3)
        return dict(found.nearest), {it.slug: share for it, share in found.sources}

    assert nearest("alice") == ({costs: 3, rollback: 2}, {"ledger": 0.6, "runbooks": 0.4})
    assert nearest("bob") == ({rollback: 2}, {"runbooks": 1.0})
    assert nearest("charlie") == ({}, {})
