"""Paging through documents."""

import pytest

from explorer.pages.documents.views import MAX_LISTED, PER_PAGE, document_page, page_number


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
    assert page_number(asked, total) == number


def test_a_page_knows_what_stands_around_it():
    rows = ("row",) * PER_PAGE
    page = document_page(rows, 2 * PER_PAGE + 20, 2)
    assert (page["first"], page["last"], page["before"], page["after"], page["is_capped"]) == (51, 100, 1, 3, False)
    assert document_page(rows[:20], 120, 3)["after"] is None
    empty = document_page((), 0, 1)
    assert (empty["first"], empty["last"], empty["before"], empty["after"]) == (0, 0, None, None)


def test_what_cannot_be_paged_to_is_said():
    last = document_page(("row",) * PER_PAGE, MAX_LISTED + 1, MAX_LISTED // PER_PAGE)
    assert (last["is_capped"], last["listed"], last["after"]) == (True, MAX_LISTED, None)
