"""Latency and volume: the figure and its table say what was counted."""

from datetime import UTC, datetime, timedelta

from explorer.charts.traffic import traffic_charts
from retrieval.records.traffic import Bin, Figures, Traffic

HOUR = timedelta(hours=1)
START = datetime(2026, 6, 1, 8, tzinfo=UTC)
FOUND = Traffic(
    Figures(12, 30.0, 1204.0, refused=1, degraded=2, empty=3),
    (
        Bin(START, Figures(10, 25.04, 80.0, refused=1, degraded=2, empty=2)),
        Bin(START + HOUR, Figures()),
        Bin(START + 2 * HOUR, Figures(2, 40.0, 1204.0, empty=1)),
    ),
    HOUR,
)


def test_latency_is_drawn_with_gaps_where_nothing_was_searched():
    latency, _ = traffic_charts(FOUND)
    p95, p50 = latency.data
    assert p50["y"] == [25.0, None, 40.0]
    assert p95["y"] == [80.0, None, 1204.0]
    assert p50["x"] == ["2026-06-01 08:00", "2026-06-01 09:00", "2026-06-01 10:00"]
    assert latency.rows == (
        ("01 Jun 08:00", "10", "25", "80"),
        ("01 Jun 09:00", "0", "\N{EN DASH}", "\N{EN DASH}"),
        ("01 Jun 10:00", "2", "40", "1,204"),
    )
    assert "30 ms" in latency.summary
    assert "1,204 ms" in latency.summary


def test_volume_stacks_what_found_nothing_on_what_found_something():
    _, volume = traffic_charts(FOUND)
    hits, none = volume.data
    assert (hits["y"], none["y"]) == ([8, 0, 1], [2, 0, 1])
    assert [row[1:3] for row in volume.rows] == [
        (str(found), str(empty)) for found, empty in zip(hits["y"], none["y"], strict=True)
    ]
    assert volume.rows[0] == ("01 Jun 08:00", "8", "2", "1", "2")
    assert volume.summary == "12 in total; 3 without hits, 2 degraded."


def test_days_are_named_without_the_hour():
    days = Traffic(FOUND.total, FOUND.bins, timedelta(days=1))
    assert traffic_charts(days)[0].rows[0][0] == "01 Jun"


def test_nothing_is_drawn_without_searches():
    assert traffic_charts(Traffic(Figures(), (), HOUR)) is None
