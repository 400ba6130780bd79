from explorer.charts.rank_flow import rank_flow
from retrieval.ranking.comparison import compare
from tests.explorer.conftest import chunk_id


def flow(left, right, titles=None):
    found = compare([chunk_id(it) for it in left], [chunk_id(it) for it in right])
    return rank_flow(found.moves, titles or {}, left="hybrid", right="vector only")


def test_each_direction_is_a_trace_of_lines_with_gaps_between_them():
    chart = flow([1, 2, 3, 4], [2, 1, 3, 5], {chunk_id(2): "Two"})
    traces = {trace["name"]: trace for trace in chart.data}
    assert list(traces) == ["same rank", "up", "down", "only in A", "only in B"]
    assert (traces["up"]["x"], traces["up"]["y"]) == ([0, 1, None], [2, 1, None])
    assert (traces["down"]["x"], traces["down"]["y"]) == ([0, 1, None], [1, 2, None])
    assert (traces["only in B"]["x"], traces["only in B"]["y"]) == ([1, None], [4, None])
    assert traces["up"]["text"][0] == "Two"
    assert traces["down"]["text"][0] == "deleted or not visible to you"
    assert [trace["line"]["color"] for trace in chart.data] == ["edge", "good", "bad", "faint", "accent"]


def test_the_table_and_the_summary_say_the_same():
    chart = flow([1, 2, 3, 4], [2, 1, 3, 5], {chunk_id(it): f"T{it}" for it in range(6)})
    assert chart.headers == ("Chunk", "A: hybrid", "B: vector only", "Move")
    assert chart.rows == (
        ("T2", "2", "1", "up 1"),
        ("T1", "1", "2", "down 1"),
        ("T3", "3", "3", "same"),
        ("T5", "\N{EN DASH}", "4", "only in B"),
        ("T4", "4", "\N{EN DASH}", "only in A"),
    )
    assert chart.summary == (
        "From A, hybrid, to B, vector only: 1 up, 1 down, 1 at the same rank, 1 only in A, 1 only in B."
    )


def test_a_rank_axis_falls_from_the_first_place():
    top, bottom = flow(range(1, 31), range(1, 31)).layout["yaxis"]["range"]
    assert top > bottom
    assert top == 30.6


def test_nothing_found_draws_nothing():
    assert flow([], []) is None
