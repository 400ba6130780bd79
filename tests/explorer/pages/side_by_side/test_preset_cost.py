from decimal import Decimal

import pytest

from explorer.pages.side_by_side.panels import GROUPS, ModelUse, cost_words, model_words, seconds_by_group
from retrieval.engine.state import Span


def test_groups_sum_to_the_whole_and_count_what_ran_inside_once():
    spans = [
        Span("analyze", 0.001, 0, 0),
        Span("embed", 0.006, 0, 0),
        Span("dense", 0.003, 0, 3, parent="legs"),
        Span("fulltext", 0.002, 0, 1, parent="legs"),
        Span("legs", 0.004, 0, 0),
        Span("fuse", 0.0005, 0, 4),
        Span("blend", 0.0005, 4, 4),
        Span("something_new", 0.002, 4, 4),
        Span("assemble", 0.001, 4, 4),
    ]
    found = seconds_by_group(spans)
    # 1 + 6; 4 of the legs, whatever they took each; 0.5; 0.5 and the unknown stage's 2; 1.
    assert found == pytest.approx({"question": 0.007, "find": 0.004, "merge": 0.0005, "rank": 0.0025, "pack": 0.001})
    assert sum(found.values()) == pytest.approx(sum(span.seconds for span in spans if not span.parent))
    assert list(found) == list(GROUPS)


def test_a_models_use_is_told_in_words():
    use = ModelUse("m", calls=2, known=1, prompt_tokens=1204, completion_tokens=96, is_estimated=False)
    assert model_words([use]) == "m: 2 calls, 1,204 prompt tokens, 96 completion tokens"
    kept = ModelUse("m", calls=0, known=1, prompt_tokens=0, completion_tokens=0, is_estimated=False)
    assert model_words([kept]) == "m: no calls, cached grades used"
    assert "about 5 prompt tokens" in model_words([ModelUse("m", 1, 0, 5, 1, is_estimated=True)])
    assert model_words([]) == "none"


def test_a_cost_is_told_to_a_ten_thousandth():
    assert cost_words(Decimal("0.00423")) == "0.0042"
    assert cost_words(Decimal(0)) == "0"
