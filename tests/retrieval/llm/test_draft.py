"""Answers while they are written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.llm.citations import Draft

SIGNS = "abdnp. [129],-()`~\\\n>\u3010\u3011\uff3b\uff3d\u2020😀"
SPOKEN = ("[1, 2, and 3]", "[1 2]", "[1, p. 3]", "[1, pp. 3-5; 2]", " and ", ", p. 3", "[1")
whole = st.lists(
    st.sampled_from([*SIGNS, "[1]", "[1, 2]", "[[3]]", "【2†src】", "```", " [99] ", "[2-4]", *SPOKEN]), max_size=40
)


def write(pieces, count=9):
    draft = Draft(count)
    steps = [*(draft.add(piece) for piece in pieces), draft.finish()]
    return draft, [text for text, _ in steps], [citation for _, citations in steps for citation in citations]


def at_once(text, count=9):
    return write([text], count)[0]


@st.composite
def cut(draw):
    """A text, and the same text in pieces."""
    text = "".join(draw(whole))
    places = sorted(draw(st.lists(st.integers(0, len(text)), max_size=12)))
    return text, [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]


def test_a_marker_in_two_pieces_is_sent_in_one():
    _, sent, citations = write(["Yes [", "1", "]. No [2] end"])
    assert sent == ["Yes", "", " [1]. No [2] end", ""]
    assert [citation.number for citation in citations] == [1, 2]


def test_a_passage_is_announced_once():
    draft, _, announced = write(["[1] ", "[2] ", "[1] "])
    assert [citation.number for citation in announced] == [1, 2]
    assert [citation.number for citation in draft.citations] == [1, 2, 1]


@pytest.mark.parametrize(
    ("written", "sent", "removed"),
    [
        ("Both [1, 2].", "Both [1][2].", 0),
        ("Both [1,2; 3] too", "Both [1][2][3] too", 0),
        ("Three [1, 2, and 3], [1 and 2] or [1 & 2]", "Three [1][2][3], [1][2] or [1][2]", 0),
        ("Both [1 2], [1 2 3] and [1 22]", "Both [1][2], [1][2][3] and [1]", 1),
        ("Pages [1, p. 3], [1, pp. 3-5; 2 p. 7] and [1, page 12]", "Pages [1], [1][2] and [1]", 0),
        ("`[1 2]` [p. 3] [1 million] [and 2] [1, 2 or 3] [1, p. x]",) * 2 + (0,),
        ("All [2-4] or [2\u20134]", "All [2][3][4] or [2][3][4]", 0),
        ("Doubled [[3]] and 【3】, \uff3b3\uff3d, \uff3b\uff13\uff3d", "Doubled [3] and [3], [3], [3]", 0),
        ("With its source 【2†handbook.md】.", "With its source [2].", 0),
        ("Nobody [12] said [1, 12] so [13].", "Nobody said [1] so.", 3),
        ("Ranges end [8-12].", "Ranges end [8][9].", 3),
        ("`row[12]` and \\[12] stay", "`row[12]` and \\[12] stay", 0),
        ("```\nx[1, 2]\n```\n[1, 2]", "```\nx[1, 2]\n```\n[1][2]", 0),
        ("[1](https://example.org) [1, 2](x)", "[1](https://example.org) [1, 2](x)", 0),
        ("an open ` and [1, 2]", "an open ` and [1][2]", 0),
        ("an open ` and [1, 2]\n`", "an open ` and [1][2]\n`", 0),
        ("[ 1 ] [1 , 2]", "[1] [1][2]", 0),
        ("[0] [2024] [x] [] [1", "[0] [2024] [x] [] [1", 0),
        ("what is gone makes no marker [[12]1]", "what is gone makes no marker [\\[12]1]", 1),
    ],
)
def test_markers_become_uniform_and_unknown_numbers_go(written, sent, removed):
    draft = at_once(written)
    assert (draft.text, draft.removed) == (sent, removed)


@given(cut())
def test_however_it_is_cut_text_and_citations_are_those_of_the_whole(cut):
    text, pieces = cut
    draft, sent, announced = write(pieces)
    expected = at_once(text)
    assert "".join(sent) == draft.text == expected.text
    assert (draft.citations, draft.removed) == (expected.citations, expected.removed)
    firsts = {}
    for citation in expected.citations:
        firsts.setdefault(citation.number, citation)
    assert announced == list(firsts.values())


@given(cut())
def test_nothing_that_is_sent_ends_inside_a_marker_and_each_place_is_its_markers(cut):
    draft, sent, _ = write(cut[1])
    cuts = {sum(map(len, sent[:end])) for end in range(len(sent) + 1)}
    for citation in draft.citations:
        assert draft.text[citation.start : citation.end] == f"[{citation.number}]"
        assert not cuts & set(range(citation.start + 1, citation.end))


@given(cut())
def test_a_citation_is_announced_with_or_after_its_text(cut):
    draft, length = Draft(9), 0
    for piece in cut[1]:
        text, citations = draft.add(piece)
        length += len(text)
        assert all(citation.end <= length for citation in citations)


@given(st.lists(st.sampled_from([*"ab 1`[\\", "word ", "[12]"]), max_size=30))
def test_plain_words_are_not_held_back(signs):
    text = "".join(signs).replace("`", "").replace("[", "").replace("\\", "")
    draft = Draft(9)
    draft.add(f"{text}.")
    assert draft.text == f"{text}."
