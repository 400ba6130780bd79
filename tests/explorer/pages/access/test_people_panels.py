"""Summaries of changes of access."""

import pytest

from corecube.reach import ReachChange
from explorer.wording import reach_summary


@pytest.mark.parametrize(
    ("gained", "lost", "words"),
    [
        ({}, {}, "Nobody's access changes."),
        ({"bob": 1}, {}, "bob gains access to 1 connection."),
        ({}, {"bob": 3}, "bob loses access to 3 connections."),
        ({"ann": 2, "bob": 2}, {}, "2 users gain access to 2 connections."),
        (
            {"ann": 2, "bob": 4},
            {"cho": 1},
            "2 users gain access to up to 4 connections. cho loses access to 1 connection.",
        ),
    ],
)
def test_it_says_who_and_how_much(gained, lost, words):
    assert reach_summary(ReachChange(gained, lost)) == words
