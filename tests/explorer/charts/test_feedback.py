"""The chart of thumbs by week."""

from datetime import date

from explorer.charts.feedback import feedback_chart
from retrieval.operations.feedback import Thumbs


def test_nothing_is_no_chart():
    assert feedback_chart({}, first=date(2026, 3, 4), last=date(2026, 3, 18)) is None


def test_thumbs_down_are_drawn_below_zero_and_every_week_has_a_bar():
    found = {date(2026, 3, 2): Thumbs(3, 1), date(2026, 3, 16): Thumbs(0, 2)}
    chart = feedback_chart(found, first=date(2026, 3, 4), last=date(2026, 3, 18))
    assert [bars["y"] for bars in chart.data] == [[3, 0, 0], [-1, 0, -2]]
    assert chart.data[0]["x"] == ["2026-03-02", "2026-03-09", "2026-03-16"]
    assert chart.rows[0] == ("02 Mar 2026", "3", "1", "75%")
    assert chart.rows[1][3] == "\N{EN DASH}"
    assert chart.summary == "3 up, 3 down."
