"""The chart of confidences and answerable questions."""

from explorer.charts.reliability import reliability_chart
from retrieval.evaluation.calibration import Bin


def test_each_group_is_a_point_with_its_size_and_the_summary_says_how_to_read_it():
    bins = (Bin(0.0, 0.1, 2, 0.03, 0.0), Bin(0.5, 0.6, 3, 0.55, 1.0))
    chart = reliability_chart(bins)
    exact, run = chart.data
    assert (exact["x"], exact["y"]) == ([0, 1], [0, 1])
    assert (run["x"], run["y"], run["text"]) == ([0.03, 0.55], [0.0, 1.0], ["2", "3"])
    assert chart.summary.startswith("5 questions in groups of similar confidence")
    assert chart.rows == (("0.0 to 0.1", "2", "0.03", "0%"), ("0.5 to 0.6", "3", "0.55", "100%"))
