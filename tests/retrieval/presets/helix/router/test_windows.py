from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.presets.helix.router.question import time_in

#: A Thursday, in the fourth quarter.
NOW = datetime(2026, 11, 19, 15, 30, tzinfo=UTC)
LONG_AGO = datetime(1990, 1, 1, tzinfo=timezone(timedelta(hours=2)))


def day(year, month, number):
    return datetime(year, month, number, tzinfo=UTC)


#: Question, first moment, first moment after it, whether the words can only mean what is past.
SAID = [
    ("What happened yesterday?", day(2026, 11, 18), day(2026, 11, 19), True),
    ("the day before yesterday", day(2026, 11, 17), day(2026, 11, 18), True),
    ("What changed today?", day(2026, 11, 19), None, False),
    ("What happened last week?", day(2026, 11, 9), day(2026, 11, 16), True),
    ("open tickets this week", day(2026, 11, 16), None, False),
    ("incidents of the previous month", day(2026, 10, 1), day(2026, 11, 1), True),
    ("costs last quarter", day(2026, 7, 1), day(2026, 10, 1), True),
    ("turnover last year", day(2025, 1, 1), day(2026, 1, 1), True),
    ("what did I do 3 days ago", day(2026, 11, 16), day(2026, 11, 17), True),
    ("the talk two weeks ago", day(2026, 11, 2), day(2026, 11, 9), True),
    ("a month ago", day(2026, 10, 1), day(2026, 11, 1), True),
    ("errors of the last 24 hours", NOW - timedelta(hours=24), None, True),
    ("in the past two weeks", NOW - timedelta(days=14), None, True),
    ("over the last three months", datetime(2026, 8, 19, 15, 30, tzinfo=UTC), None, True),
    ("changes since March", day(2026, 3, 1), None, True),
    ("since December", day(2025, 12, 1), None, True),
    ("since Monday", day(2026, 11, 16), None, True),
    ("since yesterday", day(2026, 11, 18), None, True),
    ("since last month", day(2026, 10, 1), None, True),
    ("since 2024", day(2024, 1, 1), None, False),
    ("since 2024-05-06", day(2024, 5, 6), None, False),
    ("after 5 May 2025", day(2025, 5, 6), None, False),
    ("before March 3rd, 2025", None, day(2025, 3, 3), False),
    ("until March 2025", None, day(2025, 4, 1), False),
    ("decisions in 2024", day(2024, 1, 1), day(2025, 1, 1), False),
    ("in March", day(2026, 3, 1), day(2026, 4, 1), False),
    ("in December", day(2025, 12, 1), day(2026, 1, 1), False),
    ("in Sept. 2025", day(2025, 9, 1), day(2025, 10, 1), False),
    ("on 12 November", day(2026, 11, 12), day(2026, 11, 13), False),
    ("the note on 5th of November 2026", day(2026, 11, 5), day(2026, 11, 6), False),
    ("the call on Tuesday", day(2026, 11, 17), day(2026, 11, 18), True),
    ("the call on Thursday", day(2026, 11, 19), day(2026, 11, 20), True),
    ("from last Thursday", day(2026, 11, 12), day(2026, 11, 13), True),
]


@pytest.mark.parametrize(("text", "since", "until", "is_past"), SAID, ids=[it[0] for it in SAID])
def test_a_time_is_read_from_the_words(text, since, until, is_past):
    said = time_in(text, NOW)
    assert (said.window.since, said.window.until, said.is_past) == (since, until, is_past)
    assert said.window.words.lower() in text.lower()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "What is the limit for travel expenses?",
        "the Monday.com board",
        "May I take leave?",
        "marching orders",
        "in 2031",
        "since 30 February 2026",
        "on 31 April",
        "in 2024-13",
        "error 2024 in module 7",
        "last but not least",
        "the last 0day",
        "seconds ago",
    ],
)
def test_what_is_no_time_is_not_read(text):
    assert time_in(text, NOW) is None


@pytest.mark.parametrize("bound", ["until", "after", "on", "in", "before"])
def test_a_day_with_none_after_it_is_no_time(bound):
    assert time_in(f"what changed {bound} 9999-12-31", NOW) is None


def test_a_day_begins_at_midnight_of_the_askers_zone():
    berlin = ZoneInfo("Europe/Berlin")
    now = datetime(2026, 11, 19, 0, 30, tzinfo=berlin)
    said = time_in("yesterday", now)
    assert said.window.since == datetime(2026, 11, 18, tzinfo=berlin) == datetime(2026, 11, 17, 23, tzinfo=UTC)


def test_months_are_cut_to_their_last_day():
    said = time_in("the last three months", datetime(2026, 5, 31, tzinfo=UTC))
    assert said.window.since == day(2026, 2, 28)


@given(
    now=st.integers(0, 36_500).map(lambda days: LONG_AGO + timedelta(days=days, hours=days % 24)),
    text=st.sampled_from([it[0] for it in SAID]),
)
def test_windows_are_in_order_and_never_begin_later_than_now(now, text):
    said = time_in(text, now)
    if said is not None:
        window = said.window
        assert window.since is None or window.since <= now
        assert window.since is None or window.until is None or window.since < window.until
        assert window.since is None or window.since.tzinfo is now.tzinfo


@given(st.text(max_size=80))
def test_any_text_can_be_read(text):
    time_in(text, NOW)
