"""Why a hit stands before the next, in one sentence."""

from dataclasses import replace

from explorer.pages.explorer.page import beats_next
from retrieval.engine.types import ScoreType


def verdict(hit, following, finished, tolerance=0.01):
    return beats_next(hit, following, rank=3, scope=finished.state.scope, tolerance=tolerance)


def test_the_largest_leads_are_named_first(finished):
    first, third = finished.hits[0], finished.hits[2]
    # 0.54 - 0.12 = 0.42 and 0.24 - 0.03 = 0.21, against 0.05 - 0.1 = -0.05.
    assert verdict(first, third, finished) == "Beats #4: similarity +0.420, full text +0.210, despite freshness −0.050."  # noqa: RUF001


def test_a_lead_of_trust_is_told_as_one(finished):
    first, second = finished.hits[:2]
    # 0.695 against 0.700: less, but within the tolerance, and authoritative over reference.
    close = replace(first, score=0.695)
    assert verdict(close, second, finished) == (
        "Beats #4 on trust: authoritative over reference, with scores within 0.01."
    )


def test_trust_does_not_explain_what_lies_beyond_its_tolerance(finished):
    first, second = finished.hits[:2]
    assert verdict(replace(first, score=0.6), second, finished) == (
        "Ranks above #4 as the replacement for a higher-scored duplicate."
    )


def test_equal_scores_keep_the_order_of_ids(finished):
    second = finished.hits[1]
    assert verdict(second, second, finished) == "Same score as #4. Equal scores are ordered by chunk ID."


def test_a_lead_without_contributions_is_told_as_a_number(finished):
    bare = replace(finished.hits[1], contributions={})
    assert verdict(replace(bare, score=0.5), replace(bare, score=0.4), finished) == "Beats #4 by 0.100."


def test_the_last_hit_beats_nothing(finished):
    assert verdict(finished.hits[2], None, finished) == "Last hit in the pool."


def test_the_lead_of_a_reranker_is_told_in_its_own_scale(finished):
    first, second = (
        replace(hit, score=score, score_type=ScoreType.LOGIT, contributions={"rerank": score})
        for hit, score in zip(finished.hits, (3.2, -1.0), strict=False)
    )
    verdict = beats_next(first, second, rank=1, scope=finished.state.scope, tolerance=0.01)
    assert verdict == "Beats #2: reranker +4.200."


def test_a_logit_far_from_zero_ties_where_its_share_does(finished):
    # The logistic function of 8 and of 9 differs by 0.0002: the more trusted source stands first.
    first, second = (
        replace(hit, score=score, score_type=ScoreType.LOGIT, contributions={"rerank": score})
        for hit, score in zip(finished.hits, (8.0, 9.0), strict=False)
    )
    verdict = beats_next(first, second, rank=1, scope=finished.state.scope, tolerance=0.01)
    assert verdict.startswith("Beats #2 on trust")


def test_what_was_not_reranked_stands_behind_whatever_its_score(finished):
    first = replace(finished.hits[0], score=-5.0, score_type=ScoreType.LOGIT, contributions={"rerank": -5.0})
    verdict = beats_next(first, finished.hits[1], rank=30, scope=finished.state.scope, tolerance=0.01)
    assert verdict == "Ranks above #31, which the reranker did not score."
