"""Parent sections of chunks whose sizes are given; the most is 100 tokens."""

from hypothesis import given
from hypothesis import strategies as st

from retrieval.ingest.chunk import with_parents
from retrieval.text.document import ChunkDraft


def parents(*chunks, limit=100):
    """Return each chunk's parent of chunks given as (heading path, tokens)."""
    drafts = [ChunkDraft(number, "x", tuple(path.split()), tokens) for number, (path, tokens) in enumerate(chunks)]
    return [(draft.section_start, draft.section_end) for draft in with_parents(drafts, limit)]


def test_a_small_document_is_one_parent():
    assert parents(("", 20), ("A", 30), ("A B", 30), ("C", 20)) == [(0, 3)] * 4


def test_a_larger_one_falls_apart_at_its_top_headings():
    assert parents(("A", 40), ("A B", 40), ("C", 30), ("C D", 30)) == [(0, 1), (0, 1), (2, 3), (2, 3)]


def test_a_large_section_falls_apart_at_the_headings_below():
    # A has 150 tokens with its own 20 first; A B and A C are parents by themselves.
    found = parents(("A", 20), ("A B", 40), ("A B", 30), ("A C", 60), ("D", 5))
    assert found == [(0, 0), (1, 2), (1, 2), (3, 3), (4, 4)]


def test_without_headings_neighbours_fill_parents_in_turn():
    assert parents(*[("", 40)] * 5) == [(0, 1), (0, 1), (2, 3), (2, 3), (4, 4)]


def test_a_chunk_over_the_most_is_its_own_parent():
    assert parents(("A", 150), ("A", 20)) == [(0, 0), (1, 1)]


def test_a_heading_that_comes_back_is_another_section():
    assert parents(("A", 60), ("B", 60), ("A", 60)) == [(0, 0), (1, 1), (2, 2)]


PATHS = st.lists(st.sampled_from("AB"), max_size=3).map(" ".join)


@given(st.lists(st.tuples(PATHS, st.integers(1, 120)), max_size=20))
def test_parents_lie_side_by_side_and_hold_their_chunks(chunks):
    found = parents(*chunks)
    assert all(start <= number <= end for number, (start, end) in enumerate(found))
    assert all(found[number] == found[start] == found[end] for number, (start, end) in enumerate(found))
    sizes = {bounds: sum(tokens for _, tokens in chunks[bounds[0] : bounds[1] + 1]) for bounds in found}
    assert all(size <= 100 or start == end for (start, end), size in sizes.items())
