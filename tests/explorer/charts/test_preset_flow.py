from explorer.charts.rank_flow import preset_flow
from tests.explorer.conftest import chunk_id

PRESETS = ("one", "two", "three")


def flow(places, presets=PRESETS):
    names = {chunk_id(number): f"T{number}" for number in places}
    return preset_flow({chunk_id(number): ranks for number, ranks in places.items()}, names, presets)


def test_chunks_are_grouped_by_how_many_presets_share_them():
    chart = flow({1: (2, 1, 1), 2: (1, 2, None), 3: (None, None, 2)})
    traces = {trace["name"]: trace for trace in chart.data}
    assert list(traces) == ["One preset only", "Some presets", "All presets"]
    lines_and_dots = (
        [0, 1, None, 1, 2, None, 0, None, 1, None, 2, None],
        [2, 1, None, 1, 1, None, 2, None, 1, None, 1, None],
    )
    assert (traces["All presets"]["x"], traces["All presets"]["y"]) == lines_and_dots
    assert (traces["One preset only"]["x"], traces["One preset only"]["y"]) == ([2, None], [2, None])
    assert set(traces["Some presets"]["text"]) == {"T2"}


def test_a_dotted_line_passes_a_preset_that_lacks_the_chunk():
    chart = flow({1: (1, None, 3)})
    past, dots = chart.data
    assert (past["name"], past["line"]["dash"], past["x"], past["y"]) == (
        "Not returned",
        "dot",
        [0, 2, None],
        [1, 3, None],
    )
    assert dots["x"] == [0, None, 2, None]


def test_the_table_and_the_summary_say_the_same():
    chart = flow({1: (2, 1, 1), 2: (1, 2, None), 3: (None, None, 2)})
    assert chart.headers == ("Chunk", *PRESETS, "Presets")
    assert chart.rows == (
        ("T1", "2", "1", "1", "3"),
        ("T2", "1", "2", "\N{EN DASH}", "2"),
        ("T3", "\N{EN DASH}", "\N{EN DASH}", "2", "1"),
    )
    assert chart.summary.startswith("3 chunks: 1 in all 3 presets, 1 in some, 1 in one only.")


def test_every_preset_is_an_axis_and_ranks_fall_from_the_first():
    layout = flow({1: (1, 2, 30)}).layout
    assert (layout["xaxis"]["tickvals"], layout["xaxis"]["ticktext"]) == ([0, 1, 2], list(PRESETS))
    assert layout["yaxis"]["range"] == [30.6, 0.4]


def test_one_preset_or_nothing_found_draws_nothing():
    assert flow({1: (1,)}, ("one",)) is None
    assert flow({}) is None
