"""The verdict as the page shows it."""

from dataclasses import replace

import pytest

from explorer.components.answerability import answerability_panel, signal_label
from retrieval.engine.types import Answerability, Verdict
from retrieval.ranking.answerability.logistic import logistic
from retrieval.ranking.answerability.model import WITH_SENTENCES, shipped
from retrieval.ranking.answerability.verdict import AnswerabilityConfig, Reason

JUDGED = Answerability(
    verdict=Verdict.PARTIAL,
    confidence=0.456,
    is_calibrated=False,
    intercept=-0.377,
    signals={"coverage_sentence": 0.5, "unknown_share": 0.1, "cosine_best": 0.61, "leg_agreement": 0.0},
    contributions={"coverage_sentence": -0.2, "cosine_best": 0.8, "leg_agreement": -0.4},
    reason="weak_match",
    explanation="It is weak.",
)


def panel_of(found):
    return answerability_panel(found, AnswerabilityConfig())


def test_the_verdict_and_its_bounds():
    panel = panel_of(JUDGED)
    assert (panel["verdict"], panel["tone"], panel["share"]) == ("partly answerable", "warn", 45.6)
    assert (panel["partial_from"], panel["answerable_from"]) == (15.0, 84.0)
    without = replace(JUDGED, contributions={"coverage_sentence": -0.2})
    assert panel_of(without)["partial_from"] == 25.0
    assert (panel["reason"], panel["is_calibrated"]) == ("below threshold", False)


def test_a_confidence_below_its_threshold_names_both_and_what_lowers_it_most():
    def explanation(**changes):
        return panel_of(replace(JUDGED, **changes))["explanation"]

    assert (
        explanation()
        == "Confidence 0.46, answerable from 0.84. It is weak. Lowered most by: agreement of the legs' top hits, 0.00."
    )
    assert explanation(contributions={"cosine_best": 0.8}) == "Confidence 0.46, answerable from 0.84. It is weak."
    assert explanation(reason="conflicting") == "It is weak."


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_has_a_name_for_people(reason):
    panel = panel_of(replace(JUDGED, reason=reason))
    assert panel["reason"]
    assert "_" not in panel["reason"]


def test_what_weighs_most_comes_first_and_what_was_not_read_last():
    rows = panel_of(JUDGED)["rows"]
    assert [(row["value"], row["added"], row["is_for"]) for row in rows] == [
        ("0.61", "+0.80", True),
        ("0.00", "\N{MINUS SIGN}0.40", False),
        ("0.50", "\N{MINUS SIGN}0.20", False),
        ("0.10", "", True),
    ]
    # The longest bar takes half of the width; bars grow from the middle to both sides.
    assert [(row["x"], row["width"]) for row in rows] == [(50.0, 50.0), (25.0, 25.0), (37.5, 12.5), (50.0, 0.0)]


def test_the_starting_value_and_the_contributions_sum_to_the_confidence():
    panel = panel_of(JUDGED)
    assert (panel["start"], panel["sum"]) == ("\N{MINUS SIGN}0.38", "\N{MINUS SIGN}0.18")
    assert logistic(-0.177) == pytest.approx(JUDGED.confidence, abs=0.001)
    stored = panel_of(replace(JUDGED, contributions={}))
    assert (stored["sum"], stored["partial_from"]) == ("", 15.0)


def test_a_search_that_was_not_judged_shows_nothing():
    assert panel_of(None) is None


_SHOWN = ("coverage_passage", "fulltext_share", "unknown_share", "leg_overlap")


@pytest.mark.parametrize("name", [*WITH_SENTENCES, *_SHOWN])
def test_every_signal_has_a_name_for_people(name):
    assert signal_label(name) != name.replace("_", " ").capitalize()
    assert shipped("bge-small-en-v1.5").with_sentences.weights.keys() <= set(WITH_SENTENCES)
