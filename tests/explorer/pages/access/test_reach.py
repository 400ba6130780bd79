"""What a change of the grants does, in words."""

import pytest

from corecube.reach import ReachChange
from explorer.pages.access.reach import reach_words


@pytest.mark.parametrize(
    ("gained", "lost", "words"),
    [
        ({}, {}, "Nobody sees more or less than before."),
        ({"bob": 1}, {}, "bob gains sight of 1 connection."),
        ({}, {"bob": 3}, "bob loses sight of 3 connections."),
        ({"ann": 2, "bob": 2}, {}, "2 people gain sight of 2 connections."),
        (
            {"ann": 2, "bob": 4},
            {"cho": 1},
            "2 people gain sight of up to 4 connections. cho loses sight of 1 connection.",
        ),
    ],
)
def test_it_says_who_and_how_much(gained, lost, words):
    assert reach_words(ReachChange(gained, lost)) == words
