"""Paging through documents."""

import pytest

from explorer.pages.documents.views import MAX_LISTED, PER_PAGE, page_of


@pytest.mark.parametrize(
    ("asked", "total", "number"),
    [
        ("", 0, 1),
        ("1", 0, 1),
        ("2", PER_PAGE, 1),
        ("2", PER_PAGE + 1, 2),
        ("99", 3 * PER_PAGE, 3),
        ("0", 500, 1),
        ("-1", 500, 1),
        ("²", 500, 1),
        ("99999", 500, 1),
        ("9999", MAX_LISTED + 1, MAX_LISTED // PER_PAGE),
    ],
)
def test_a_page_is_one_that_there_is(asked, total, number):
    assert page_of(total, asked).number == number


def test_a_page_knows_what_stands_around_it():
    page = page_of(2 * PER_PAGE + 20, "2")
    assert (page.start_index(), page.end_index(), page.previous_page_number(), page.next_page_number()) == (
        51,
        100,
        1,
        3,
    )
    assert not page_of(120, "3").has_next()
    empty = page_of(0, "1")
    assert (empty.start_index(), empty.end_index(), empty.has_previous(), empty.has_next()) == (0, 0, False, False)


def test_what_cannot_be_paged_to_is_not_listed():
    last = page_of(MAX_LISTED + 1, "9999")
    assert (last.paginator.count, last.end_index(), last.has_next()) == (MAX_LISTED, MAX_LISTED, False)
