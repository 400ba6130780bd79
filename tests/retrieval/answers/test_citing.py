"""Citations that are added to sentences while an answer is written."""

import time

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from retrieval.answers.citing import Citer

PIECES = (
    "Drain it",
    ". ",
    "Then",
    " wait",
    " [2]",
    "!",
    "\n",
    "\n\n",
    "- ",
    "1. ",
    "1",
    "# ",
    "`x. Y`",
    "```",
    "| ",
    " |",
    "**",
)


def cited(pieces, numbers=(1,)):
    """Return the text with its added citations, and the sentences that were matched."""
    citer, texts, asked = Citer(9), [], []
    for piece, is_last in (*((it, False) for it in pieces), ("", True)):
        parts = citer.add(piece, is_last=is_last)
        part = next(parts, None)
        while part is not None:
            sent = None
            if isinstance(part, str):
                texts.append(part)
            else:
                asked.append(part.text)
                sent = numbers
            try:
                part = parts.send(sent)
            except StopIteration:
                part = None
    return texts, asked


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It takes four minutes.", "It takes four minutes [1]."),
        ("It takes four minutes", "It takes four minutes [1]"),
        ("It takes e.g. four minutes. Wait!", "It takes e.g. four minutes [1]. Wait [1]!"),
        ("**It takes four minutes.** Wait [2].", "**It takes four minutes.** [1] Wait [2]."),
        ("It takes four minutes. [2] Wait [2].", "It takes four minutes. [2] Wait [2]."),
        ("- Drain it\n- Wait.\n1. Press U\n", "- Drain it [1]\n- Wait [1].\n1. Press U [1]\n"),
        ("| Key | Use |\n|---|---|\n| U | capitals |", "| Key | Use |\n|---|---|\n| U | capitals [1] |"),
    ],
)
def test_a_citation_is_added_to_each_sentence_without_one(text, expected):
    assert "".join(cited([text])[0]) == expected


@pytest.mark.parametrize(
    "text", ["# Heading", "The steps:", "Is it so?", "Four [2].", "```\nrun. it\n```", "Run `a. B` "]
)
def test_headings_questions_code_and_cited_sentences_get_none(text):
    assert "".join(cited([text])[0]) == text


def test_a_sentence_that_no_passage_supports_is_not_changed():
    texts, asked = cited(["It takes five minutes. So wait."], numbers=())
    assert ("".join(texts), asked) == ("It takes five minutes. So wait.", ["It takes five minutes.", "So wait."])


def test_only_the_end_of_a_sentence_is_held_back():
    texts, _ = cited(["It takes", " four", " minutes", ".", " Wait", "."])
    assert texts == ["It takes", " four", " minutes", " [1]", ". Wait", " [1]", "."]


@example(["```", "Then", "`x. Y`", "Drain it", "```"], [10])  # The first line is no fence: a backtick follows.
@given(st.lists(st.sampled_from(PIECES), max_size=40), st.lists(st.integers(0, 80), max_size=12))
def test_the_text_does_not_depend_on_its_pieces(parts, cuts):
    text = "".join(parts)
    # Code that never ends may have been text until its last piece; markers come whole.
    assume(text.count("`") % 2 == 0 and "````" not in text)
    places = sorted(it for it in cuts if it <= len(text) and "[" not in text[max(0, it - 2) : it])
    pieces = [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]
    whole, asked = cited([text])
    again, asked_again = cited(pieces)
    assert "".join(again) == "".join(whole)
    assert asked_again == asked
    assert "".join(whole).replace(" [1]", "") == text.replace(" [1]", "")


@pytest.mark.parametrize(
    "unit", ["- an item is here\n", "Is it so? ", "# Head\n", "# Head\n\n", "\n", "|---|\n", "It is so. "]
)
def test_the_work_grows_with_the_text(unit):
    def seconds(count):
        text, started = unit * count, time.process_time()
        cited([text[place : place + 4] for place in range(0, len(text), 4)], numbers=())
        return time.process_time() - started

    # Quadratic work takes 64 times as long.
    assert seconds(800) < 24 * max(seconds(100), 0.01)
