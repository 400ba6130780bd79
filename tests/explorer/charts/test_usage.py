"""The chart of what language models took."""

from datetime import date
from decimal import Decimal

from explorer.charts.usage import usage_chart
from retrieval.operations.usage import Sums

FIRST, LAST = date(2026, 3, 1), date(2026, 3, 3)


def test_nothing_is_no_chart():
    assert usage_chart({}, first=FIRST, last=LAST) is None


def test_costs_are_drawn_where_there_are_any():
    found = {(FIRST, "Small"): Sums(1, 100, 10, Decimal("0.25")), (LAST, "Large"): Sums(2, 100, 10, Decimal("1.5"))}
    chart = usage_chart(found, first=FIRST, last=LAST)
    assert chart.title == "Cost by day"
    assert chart.summary == "1.7500 in total, 3 answers."
    assert [(bars["name"], bars["y"]) for bars in chart.data] == [("Large", [0, 0, 1.5]), ("Small", [0.25, 0, 0])]
    assert chart.rows[0] == ("01 Mar 2026", "\N{EN DASH}", "0.2500")


def test_tokens_are_drawn_where_nothing_costs():
    chart = usage_chart({(FIRST, "Small"): Sums(1, 1000, 10)}, first=FIRST, last=LAST)
    assert (chart.title, chart.data[0]["y"]) == ("Tokens by day", [1010, 0, 0])
