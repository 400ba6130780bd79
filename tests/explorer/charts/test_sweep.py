"""Charts of sweeps and trends."""

from datetime import UTC, datetime

from explorer.charts.sweep import SweepPoint, heat_map, pareto_plot
from explorer.charts.trend import trend_chart

POINTS = (
    SweepPoint(0, {}, 0.5, 40.0),
    SweepPoint(1, {"a": 0.2, "b": 1}, 0.7, 80.0, is_best=True),
    SweepPoint(2, {"a": 0.4, "b": 1}, 0.6, 90.0),
    SweepPoint(3, {"a": 0.4, "b": 2}, None, None),
)


def test_two_settings_make_a_map():
    chart = heat_map(POINTS, objective="nDCG@10")
    assert chart.title == "nDCG@10 by a and b"
    assert chart.rows == (("0.2", "1", "0.7000"), ("0.4", "1", "0.6000"))
    (trace,) = chart.data
    assert (trace["x"], trace["y"], trace["text"]) == (["0.2", "0.4"], ["1", "1"], ["0.700", "0.600"])
    assert "a 0.2, b 1, 0.700" in chart.summary


def test_one_setting_makes_no_map():
    assert heat_map([SweepPoint(1, {"a": 0.2}, 0.5, 40.0)], objective="nDCG@10") is None
    assert heat_map(POINTS[:1], objective="nDCG@10") is None


def test_the_front_the_start_and_the_best_are_marked():
    chart = pareto_plot(POINTS, objective="nDCG@10", max_p95_ms=85)
    others, front, start, best = chart.data
    assert (others["x"], front["x"], start["x"], best["x"]) == ([90.0], [40.0, 80.0], [40.0], [80.0])
    assert [row[3] for row in chart.rows] == ["yes", "yes", "\N{EN DASH}"]
    assert chart.summary == (
        "2 of 3 on the front: no other configuration beats them in both. At most 85 ms are allowed."
    )
    assert pareto_plot(POINTS[:1], objective="nDCG@10", max_p95_ms=None) is None


def test_a_trend_has_its_minimum_as_a_line():
    means = [(datetime(2026, 6, day, tzinfo=UTC), 0.5 + day / 100, "night") for day in (1, 2)]
    chart = trend_chart(7, means, objective="MRR@10", preset="helix", minimum=0.4)
    assert (chart.id, chart.summary) == ("trend-7", "2 runs; the last one: 0.520. Minimum: 0.4.")
    assert chart.data[1]["y"] == [0.4, 0.4]
    assert chart.rows[0] == ("01 Jun 2026 00:00", "0.5100", "night")
    assert len(trend_chart(7, means, objective="MRR@10", preset="helix", minimum=None).data) == 1
    assert trend_chart(7, [], objective="MRR@10", preset="helix", minimum=0.4) is None


def test_a_trend_has_the_share_of_right_answers_where_it_was_measured():
    means = [(datetime(2026, 6, day, tzinfo=UTC), 0.5, "night") for day in (1, 2)]
    right = [(datetime(2026, 6, 2, tzinfo=UTC), 0.75)]
    chart = trend_chart(7, means, objective="MRR@10", preset="helix", minimum=None, right=right)
    assert (chart.data[1]["name"], chart.data[1]["y"]) == ("Right answers", [0.75])
    assert [row[2] for row in chart.rows] == ["\N{EN DASH}", "0.7500"]
    assert chart.summary.endswith("Right answers: 0.750.")
