"""Markers in answers, whole and while they are written."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.generate.citations import escape_markers, find_citations, sendable_length, settled_citations
from retrieval.generate.types import Citation

answers = st.text(alphabet="ab [1290]()`~\\\n>é😀", max_size=60)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("Yes [1].", [1]),
        ("Yes[1][2] and [1]", [1, 2, 1]),
        ("[0] [4] [01] [1234] [a] [ 1 ]", []),
        ("a link [1](https://example.org) and [2]", [2]),
        ("escaped \\[1] and [2]", [2]),
        ("code `row[1]` and [2]", [2]),
        ("an open tick ` then [1]", [1]),
        ("``two ` ticks [1]`` [2]", [2]),
        ("```\nrow[1]\n```\n[2]", [2]),
        ("> ~~~\n> row[1]\n> ~~~\n> [2]", [2]),
        ("```\nnever closed [1]", []),
        ("[[3]]", [3]),
    ],
)
def test_markers_are_bracketed_numbers_of_passages_outside_code_and_links(text, numbers):
    assert [citation.number for citation in find_citations(text, 3)] == numbers


def test_positions_are_code_points_with_an_exclusive_end():
    assert find_citations("😀é [2]!", 2) == (Citation(2, 3, 6),)


@given(answers, st.integers(0, 999))
def test_each_citation_spans_exactly_its_marker(text, count):
    citations = find_citations(text, count)
    assert [text[found.start : found.end] for found in citations] == [f"[{found.number}]" for found in citations]
    assert all(1 <= found.number <= count for found in citations)
    assert all(first.end <= second.start for first, second in pairwise(citations))


@given(answers, answers)
def test_a_settled_citation_stays_one_whatever_follows(text, rest):
    assert set(settled_citations(text, 9)) <= set(find_citations(text + rest, 9))


def test_a_marker_is_settled_once_something_other_than_a_link_follows():
    assert settled_citations("Yes [1]", 1) == ()
    assert settled_citations("Yes [1] ", 1) == (Citation(1, 4, 7),)


def test_an_open_backtick_holds_citations_back_until_its_line_ends():
    assert settled_citations("`a [1] b", 1) == ()
    assert settled_citations("`a [1] b\n", 1) == (Citation(1, 3, 6),)


@given(answers, answers)
def test_what_is_sendable_never_ends_inside_a_marker(text, rest):
    cut = sendable_length(text)
    assert all(not found.start < cut < found.end for found in find_citations(text + rest, 999))
    assert len(text) - cut <= len("[123")


@given(answers)
def test_escaped_text_has_no_citations_and_unescapes_to_itself(text):
    escaped = escape_markers(text)
    assert find_citations(escaped, 999) == ()
    assert escaped.replace("\\[", "[").replace("\\", "") == text.replace("\\", "")
