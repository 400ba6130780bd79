"""Answers while they are written."""

from hypothesis import given
from hypothesis import strategies as st

from retrieval.generate.citations import find_citations
from retrieval.generate.draft import Draft

answers = st.text(alphabet="ab [129]()`\\\n", max_size=60)


def write(pieces, count=9):
    draft = Draft(count)
    steps = [*(draft.add(piece) for piece in pieces), draft.finish()]
    return [text for text, _ in steps], [citation for _, citations in steps for citation in citations]


def test_a_marker_in_two_pieces_is_sent_in_one():
    sent, citations = write(["Yes [", "1", "]. No [2] end"])
    assert sent == ["Yes ", "", "[1]. No [2] end", ""]
    assert [citation.number for citation in citations] == [1, 2]


def test_a_passage_is_announced_once():
    assert [citation.number for citation in write(["[1] ", "[2] ", "[1] "])[1]] == [1, 2]


@given(st.lists(answers, max_size=8))
def test_however_it_is_cut_the_text_and_the_first_citations_are_those_of_the_whole(pieces):
    sent, citations = write(pieces)
    whole = "".join(pieces)
    assert "".join(sent) == whole
    firsts = {}
    for citation in find_citations(whole, 9):
        firsts.setdefault(citation.number, citation)
    assert {citation.number: citation for citation in citations} == firsts
    assert len(citations) == len(firsts)


@given(st.lists(answers, max_size=8))
def test_no_marker_is_cut_in_two(pieces):
    sent, _ = write(pieces, count=999)
    cuts = {sum(map(len, sent[:end])) for end in range(len(sent) + 1)}
    for citation in find_citations("".join(pieces), 999):
        assert not cuts & set(range(citation.start + 1, citation.end))
