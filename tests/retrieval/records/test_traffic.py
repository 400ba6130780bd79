"""Searches over time, counted by PostgreSQL."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.models import SearchRecord
from retrieval.records.traffic import Figures, bin_begin, traffic

UNTIL = datetime(2026, 6, 1, 12, 20, tzinfo=UTC)
HOUR = timedelta(hours=1)


def record(minutes_ago, milliseconds=10.0, **values):
    made = SearchRecord.objects.create(preset="corecube", milliseconds=milliseconds, **{"hit_count": 3, **values})
    SearchRecord.objects.filter(pk=made.pk).update(at=UNTIL - timedelta(minutes=minutes_ago))


@pytest.mark.django_db
def test_searches_are_counted_by_bin_and_in_all(django_assert_num_queries):
    for milliseconds in (10, 20, 30, 40):
        record(5, milliseconds)
    record(70, 100, hit_count=0, degraded=["rerank_failed"])
    record(70, 200, is_refused=True)
    record(60 * 30, 9999)
    with django_assert_num_queries(2):
        found = traffic(until=UNTIL, span=timedelta(hours=24), width=HOUR)
    # From the bin of yesterday 12:00 to the one of today 12:00.
    assert len(found.bins) == 25
    assert found.bins[0].begins == datetime(2026, 5, 31, 12, tzinfo=UTC)
    # Between 20 and 30; 40 less 15 hundredths of the three steps of 10.
    assert found.bins[-1].figures == Figures(4, 25.0, pytest.approx(38.5))
    assert found.bins[-2].figures == Figures(2, 150.0, pytest.approx(195.0), refused=1, degraded=1, empty=1)
    assert found.bins[5].figures == Figures()
    # 10 20 30 40 100 200
    assert (found.total.searches, found.total.p50) == (6, 35.0)
    assert found.total.share(found.total.empty) == pytest.approx(100 / 6)


@pytest.mark.django_db
def test_nothing_searched_is_no_figure():
    found = traffic(until=UNTIL, span=timedelta(days=30), width=timedelta(days=1))
    assert found.total == Figures()
    assert found.total.share(0) == 0.0
    assert len(found.bins) == 31
    assert found.bins[-1].begins == datetime(2026, 6, 1, tzinfo=UTC)


@given(st.integers(0, 10**9), st.integers(1, 48))
def test_a_moment_lies_in_its_bin(seconds, hours):
    at = datetime(2001, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    begin, width = bin_begin(at, timedelta(hours=hours)), timedelta(hours=hours)
    assert begin <= at < begin + width
    assert bin_begin(begin, width) == begin
