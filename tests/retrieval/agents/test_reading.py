"""Joining a document's chunks."""

from hypothesis import given
from hypothesis import strategies as st

from retrieval.agents.tools import joint

SHARED = "the queue takes four minutes to drain"


def test_what_neighbours_share_stands_once():
    assert joint(f"First part, {SHARED}", f"{SHARED}, then the rest.") == ", then the rest."


def test_what_shares_nothing_is_a_paragraph():
    assert joint("One.", "Two.") == "\n\nTwo."
    assert joint("", "Two.") == "Two."
    # Too short to be more than chance.
    assert joint("ends in a", "a begins") == "\n\na begins"


@given(before=st.text(), shared=st.text(min_size=20, max_size=60), after=st.text())
def test_nothing_is_lost(before, shared, after):
    text = before + shared
    whole = text + joint(text, shared + after)
    assert whole.startswith(text)
    assert whole.endswith(after)
