"""Thumbs for answers, counted by hand."""

from datetime import UTC, date, datetime

import pytest

from retrieval.models import Conversation, Message, SearchRecord
from retrieval.operations.feedback import SourceThumbs, Thumbs, by_preset, by_source, by_week, rated_between, total

FIRST, LAST = date(2026, 3, 2), date(2026, 3, 15)  # Two weeks, from a Monday to a Sunday.


def rated(day, feedback, preset="corecube", hour=12):
    record = SearchRecord.objects.create(preset=preset, milliseconds=1, hit_count=1, feedback=feedback)
    SearchRecord.objects.filter(pk=record.pk).update(at=datetime(2026, 3, day, hour, tzinfo=UTC))


@pytest.fixture
def ratings(db):
    rated(1, -1)  # Before the period.
    rated(2, 1, hour=0)
    rated(8, -1)
    rated(9, 1, preset="helix")
    rated(15, 1, hour=23)
    rated(16, -1)  # After it.
    rated(10, None)


def test_the_sums_are_those_of_the_period(ratings):
    thumbs = total(rated_between(FIRST, LAST))
    assert thumbs == Thumbs(up=3, down=1)
    assert (thumbs.total, thumbs.share) == (4, 0.75)
    assert Thumbs().share is None


def test_the_trend_has_weeks_from_monday(ratings):
    assert by_week(rated_between(FIRST, LAST)) == {date(2026, 3, 2): Thumbs(1, 1), date(2026, 3, 9): Thumbs(2, 0)}


def test_presets_are_listed_by_their_number_of_ratings(ratings):
    found = by_preset(rated_between(FIRST, LAST))
    assert list(found.items()) == [("corecube", Thumbs(2, 1)), ("helix", Thumbs(1, 0))]


def passage(number, connection, *, cited=True):
    return {"number": number, "connection": connection, "cited": cited}


@pytest.mark.django_db
def test_an_answer_counts_once_for_each_source_that_it_cites_and_a_passage_for_its_own(governed):
    conversation = Conversation.objects.create(user=governed.bob, preset="corecube")
    shown = [passage(1, 7), passage(2, 7), passage(3, 8), passage(4, 9, cited=False)]
    answers = [(1, {}), (-1, {"1": 1, "2": -1, "4": -1}), (None, {"3": 1}), (None, {})]
    for ordinal, (feedback, ratings) in enumerate(answers, start=1):
        message = Message.objects.create(
            conversation=conversation,
            ordinal=ordinal,
            role="assistant",
            passages=shown,
            feedback=feedback,
            citation_feedback=ratings,
        )
        Message.objects.filter(pk=message.pk).update(at=datetime(2026, 3, 9, tzinfo=UTC))
    assert by_source(FIRST, LAST) == {
        7: SourceThumbs(answers=Thumbs(1, 1), passages=Thumbs(1, 1)),
        8: SourceThumbs(answers=Thumbs(1, 1), passages=Thumbs(1, 0)),
        9: SourceThumbs(answers=Thumbs(), passages=Thumbs(0, 1)),
    }
