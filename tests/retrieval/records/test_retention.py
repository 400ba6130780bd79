from datetime import timedelta

import pytest
from django.utils import timezone

from retrieval.models import Case, QuestionSet, SearchRecord
from retrieval.records.retention import forget_old_searches


@pytest.fixture
def aged(db):
    """Return a function that logs a search some days ago."""

    def record(days):
        made = SearchRecord.objects.create(preset="corecube", preset_version="1", milliseconds=1.0, hit_count=0)
        SearchRecord.objects.filter(pk=made.pk).update(at=timezone.now() - timedelta(days=days))
        return made

    return record


def test_searches_past_their_days_go_oldest_first_in_batches(aged, settings):
    settings.CORECUBE_KEEP_SEARCHES_DAYS = 90
    kept, late, oldest = aged(89), aged(91), aged(300)
    assert forget_old_searches(batch=1) == 1
    assert set(SearchRecord.objects.all()) == {kept, late}
    assert oldest not in SearchRecord.objects.all()
    assert forget_old_searches() == 1
    assert forget_old_searches() == 0
    assert list(SearchRecord.objects.all()) == [kept]


def test_zero_days_keep_them_for_ever(aged, settings):
    settings.CORECUBE_KEEP_SEARCHES_DAYS = 0
    aged(36_000)
    assert forget_old_searches() == 0


def test_a_case_outlives_the_search_that_it_was_saved_from(aged, settings):
    settings.CORECUBE_KEEP_SEARCHES_DAYS = 1
    questions = QuestionSet.objects.create(slug="s", name="S")
    case = Case.objects.create(question_set=questions, query="q", record=aged(2))
    forget_old_searches()
    case.refresh_from_db()
    assert case.record is None


def test_the_workers_tick_forgets(aged, settings):
    from retrieval.tasks.worker import tick

    settings.CORECUBE_KEEP_SEARCHES_DAYS = 1
    aged(2)
    tick()
    assert not SearchRecord.objects.exists()
