"""Sharing candidates out among prompts."""

from hypothesis import given
from hypothesis import strategies as st

from retrieval.llm.types import Window
from retrieval.presets.contextpack.judging import batches


def test_the_answers_length_parts_them_evenly():
    # (1024 - 16) / 80 = 12 results fit an answer, so 50 candidates take five prompts, of ten each.
    found = batches([300] * 50, Window(128_000, 1024), around=400)
    assert [len(it) for it in found] == [10] * 5


def test_the_prompts_length_parts_them():
    # int((4096 - 1024) * 0.85) - 411 = 2200 tokens are left: seven candidates of 300.
    found = batches([300] * 10, Window(4096, 1024), around=411)
    assert sum(map(len, found)) == 10
    assert max(map(len, found)) <= 7
    assert len(found) == 2


def test_a_candidate_too_large_is_left_out_and_the_others_stay():
    assert batches([10, 5000, 20], Window(4096, 1024), around=100) == ((0, 2),)
    assert batches([10], Window(1024, 512), around=500) == ()


def test_nothing_needs_no_prompt():
    assert batches([], Window(4096, 1024), around=100) == ()


@given(st.lists(st.integers(1, 500), max_size=60), st.integers(2048, 20_000), st.integers(64, 1000))
def test_every_candidate_that_fits_is_in_one_run_that_fits(sizes, context, answer):
    found = batches(sizes, Window(context, answer), around=50)
    room = int((context - answer) * 0.85) - 50
    assert [place for run in found for place in run] == [place for place, size in enumerate(sizes) if size <= room]
    assert all(sum(sizes[place] for place in run) <= room for run in found)
    assert all(len(run) <= max(1, (answer - 16) // 80) for run in found)
