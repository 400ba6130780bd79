"""Two runs query by query."""

from explorer.charts.scatter import scatter_chart


def test_each_query_is_a_dot():
    chart = scatter_chart([("one", 0.5, 1.0), ("two", 0.5, 0.5), ("three", 1.0, 0.25)], names=("A", "B"))
    assert chart.summary == "1 of 3 queries above the diagonal, where B is better; 1 below it."
    dots = chart.data[1]
    assert (dots["x"], dots["y"], dots["customdata"]) == ([0.5, 0.5, 1.0], [1.0, 0.5, 0.25], ["one", "two", "three"])
    assert chart.rows[0] == ("one", "0.500", "1.000")
    assert scatter_chart([], names=("A", "B")) is None
