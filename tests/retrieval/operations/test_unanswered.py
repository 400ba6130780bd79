"""Refused questions by topic."""

from datetime import timedelta

import pytest
from django.utils import timezone

from retrieval.models import SearchRecord
from retrieval.operations.unanswered import Topic, refused_questions, topics

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
        Topic("holiday", 5, "How many holidays do we have?"),
        Topic("basel", 2, "Where is the Basel office?"),
        Topic("", 1, "Is there a canteen?"),
    )


def test_what_is_beyond_the_limit_is_in_no_topic():
    assert topics(ASKED, limit=1)[1] == Topic("", 3, "Where is the Basel office?")


@pytest.mark.parametrize("asked", [(), ("", " ")])
def test_without_questions_there_are_no_topics(asked):
    assert topics([it for it in asked if it.strip()], limit=5) == ()


def test_a_question_alone_and_words_of_every_question_are_no_topic():
    assert topics(("What is the plan?", "What is the price?"), limit=5) == (Topic("", 2, "What is the plan?"),)


@pytest.mark.django_db
def test_refusals_of_the_period_are_read_where_their_text_is_stored():
    for query, is_refused in (("a", True), ("b", False), ("", True), ("old", True)):
        SearchRecord.objects.create(preset="corecube", milliseconds=1, hit_count=0, query=query, is_refused=is_refused)
    SearchRecord.objects.filter(query="old").update(at=timezone.now() - timedelta(days=8))
    assert refused_questions(timezone.now() - timedelta(days=7)) == ["a"]
