"""Markers of a whole text, and of a text that is quoted."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.llm.citations import escape_markers, find_citations, normalised, without_markers
from retrieval.llm.types import Citation

answers = st.text(alphabet="ab [1290]()`~\\\n>é😀", max_size=60)
quoted = st.text(alphabet="ab [129],-\\\n【】\uff3b\uff3d", max_size=60)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("Yes [1].", [1]),
        ("Yes[1][2] and [1]", [1, 2, 1]),
        ("[0] [4] [01] [1234] [a]", []),
        ("a link [1](https://example.org) and [2]", [2]),
        ("escaped \\[1] and [2]", [2]),
        ("an escaped backslash \\\\[1]", [1]),
        ("code `row[1]` and [2]", [2]),
        ("an open tick ` then [1]", [1]),
        ("``two ` ticks [1]`` [2]", [2]),
        ("```\nrow[1]\n```\n[2]", [2]),
        ("```\nrow[1]\n```x\n[2]", []),
        ("````\nrow[1]\n```\n[2]\n`````  \n[3]", [3]),
        ("> ~~~\n> row[1]\n> ~~~\n> [2]", [2]),
        ("```\nnever closed [1]", []),
        ("```inline``` [1]", [1]),
        ("[[3]]", []),
        ("[1, 2]", []),
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


@pytest.mark.parametrize(
    ("text", "without"),
    [
        ("Four minutes [1]. Then [2, 3] more.", "Four minutes. Then more."),
        ("`row[1]` stays, \\[1] too [1]", "`row[1]` stays, \\[1] too"),
    ],
)
def test_a_text_can_be_had_without_its_markers(text, without):
    assert without_markers(text) == without


@given(quoted, st.integers(0, 999))
def test_what_is_normal_stays_as_it_is(text, count):
    once = normalised(text, count)
    assert normalised(once, count) == once


@given(quoted)
def test_quoted_text_has_no_citations(text):
    escaped = escape_markers(text)
    assert normalised(escaped, 999) == escaped
    assert find_citations(escaped, 999) == ()


@given(st.text(alphabet="ab [129],-\n", max_size=60))
def test_quoted_text_reads_as_before(text):
    assert escape_markers(text).replace("\\[", "[") == text


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("see [1]", "see \\[1]"),
        ("see \\[1]", "see \\[1]"),
        ("see \\\\[1]", "see \\\\\\[1]"),
        ("[1, 2] [3-4] [[5]]", "\\[1, 2] \\[3-4] \\[\\[5]]"),
        ("【3】 【3†page】 \uff3b4\uff3d", "\\[3] \\[3†page] \\[4]"),
        ("row[a] [2024] [x1]", "row[a] [2024] [x1]"),
    ],
)
def test_every_form_of_a_marker_is_escaped_once(text, escaped):
    assert escape_markers(text) == escaped
