import uuid
from datetime import UTC, datetime

import pytest
from django.http import QueryDict

from explorer.pages.log.filters import LogFilter, Place


def test_an_address_is_read():
    query = QueryDict("flag=slow&flag=refused&ms=250&user=bob&preset=corecube&surface=api&q=+leave+&since=week")
    assert LogFilter.read(query) == LogFilter(
        flags=("refused", "slow"), slow_ms=250, user="bob", preset="corecube", surface="api", text="leave", since="week"
    )


@pytest.mark.parametrize(
    "query", ["", "flag=x&ms=x&preset=x&surface=x&since=x&q=+", "ms=%C2%B2", "ms=99999999999", "ms=-1"]
)
def test_what_it_cannot_mean_is_left_out(query):
    assert LogFilter.read(QueryDict(query)) == LogFilter()
    assert not LogFilter.read(QueryDict(query)).is_set


def test_the_milliseconds_alone_filter_nothing():
    assert not LogFilter.read(QueryDict("ms=100")).is_set


def test_a_nul_does_no_harm():
    assert LogFilter.read(QueryDict("q=a%00b&user=%00")).text == "a b"


def test_a_place_is_written_and_read():
    place = Place(datetime(2026, 6, 1, 12, 0, 0, 123456, tzinfo=UTC), uuid.UUID(int=7))
    assert Place.read(str(place)) == place


@pytest.mark.parametrize(
    "text", ["", "~", "2026-06-01~x", "2026-06-01T12:00~" + "0" * 32, "2026-99-01T12:00Z~" + "0" * 32]
)
def test_what_names_no_place_is_none(text):
    assert Place.read(text) is None
