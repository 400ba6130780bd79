"""What an answer states, and where."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.answers.claims import claims
from retrieval.llm.citations import find_citations


def found(text):
    return [(claim.text, claim.numbers) for claim in claims(text, find_citations(text, 9))]


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("It takes four minutes [1]. Then it ends [2].", [("It takes four minutes.", (1,)), ("Then it ends.", (2,))]),
        (
            "It takes four minutes.[1][2] Then it ends. [3]",
            [("It takes four minutes.", (1, 2)), ("Then it ends.", (3,))],
        ),
        ("It drains. It takes four minutes [1].", [("It drains.", (1,)), ("It takes four minutes.", (1,))]),
        ("It drains [1]. It takes four minutes.", [("It drains.", (1,)), ("It takes four minutes.", (1,))]),
        ("One [1].\n\nAnother without.", [("One.", (1,)), ("Another without.", ())]),
        ("A sentence\nover two lines [1].", [("A sentence\nover two lines.", (1,))]),
        ("Ask Dr. Solano, e.g. by mail [1].", [("Ask Dr. Solano, e.g. by mail.", (1,))]),
        ("Es gilt bis 31. März [1]. Dann nicht.", [("Es gilt bis 31. März.", (1,)), ("Dann nicht.", (1,))]),
        ("The steps are:\n\n1. Drain it [1]\n2. **Stop** it [2]", [("Drain it", (1,)), ("Stop it", (2,))]),
        ("- `deployctl rollback` first [1]\n- then wait", [("deployctl rollback first", (1,)), ("then wait", ())]),
        ("# Draining\n\n> It drains. [1]", [("It drains.", (1,))]),
        ("Run this [1]:\n\n```\nrm -rf x. Really.\n```\n", []),
        ("| Step | Minutes |\n| --- | ---: |\n| Drain | 4 [1] |", [("Step | Minutes", ()), ("Drain | 4", (1,))]),
        ("Shall it drain? Yes [1].", [("Yes.", (1,))]),
        ("", []),
    ],
)
def test_sentences_items_and_rows_are_claims_with_what_they_cite(text, stated):
    assert found(text) == stated


def test_a_claims_place_is_that_of_its_sentence_with_its_markers():
    text = "😀 First [1].  Second, *really* [2]. [3]\n"
    places = [text[claim.start : claim.end] for claim in claims(text, find_citations(text, 9))]
    assert places == ["😀 First [1].", "Second, *really* [2]. [3]"]


@given(st.text(alphabet="ab. [12]|-#>*`~\n!?:", max_size=80))
def test_claims_stand_in_order_inside_the_text(text):
    stated = claims(text, find_citations(text, 9))
    assert all(0 <= claim.start < claim.end <= len(text) for claim in stated)
    assert all(before.end <= after.start for before, after in pairwise(stated))
