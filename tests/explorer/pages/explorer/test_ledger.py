"""The score breakdown, by numbers worked out by hand."""

from dataclasses import replace

import pytest

from explorer.pages.explorer.ledger import LedgerSource, ledger, leg_rank
from retrieval.engine.state import Drop, DropReason
from retrieval.engine.types import ScoreType, TermMatch


@pytest.fixture
def rows(finished):
    """Return the rows of a hit's ledger by signal."""

    def rows_of(place, outcome=finished):
        made = ledger(outcome.hits[place], LedgerSource.of(outcome))
        return {row.signal: row for row in (*made.parts, *made.decisions)}

    return rows_of


def test_the_vector_row_shows_cosine_rank_and_weight(rows):
    row = rows(0)["dense"]
    assert row.label == "Vector similarity"
    assert row.facts == ("cosine 0.713", "rank 2 of 3")
    # 0.54 / 0.6 = 0.9
    assert row.formula == "0.6 × 0.900 min-max normalised"  # noqa: RUF001
    assert (row.value, row.config_key, row.absent) == ("+0.540", "blend.dense", False)


def test_the_weight_shown_is_the_one_that_this_query_got(rows, make_outcome):
    moved = make_outcome(weights={"dense": 0.675, "fulltext": 0.225, "freshness": 0.1})
    # 0.54 / 0.675 = 0.8
    assert rows(0, moved)["dense"].formula == "0.675 × 0.800 min-max normalised"  # noqa: RUF001


def test_the_full_text_row_lists_what_matched_and_where(rows):
    row = rows(0)["fulltext"]
    assert row.terms == (TermMatch("rollback", 4.0, 0.3, "A"), TermMatch("stage", 2.0, 0.082, "C"))
    assert row.facts == ("score 0.382", "rank 1 of 1")
    # 0.24 / 0.3 = 0.8
    assert row.formula == "0.3 × 0.800 min-max normalised"  # noqa: RUF001


def test_a_leg_that_did_not_return_the_hit_is_absent(rows):
    row = rows(1)["fulltext"]
    assert row.absent
    assert row.facts == ("contains no query term", "not among the leg's 1")


def test_the_freshness_row_shows_the_halving(rows):
    # 30 days at a half-life of 30 days.
    row = rows(0)["freshness"]
    assert row.facts == ("30.0 days since its last sync", "0.5^(30.0/30) = 0.500")
    assert row.formula == "0.1 × 0.500"  # noqa: RUF001


def test_the_parts_add_up_to_the_score(finished):
    made = ledger(finished.hits[0], LedgerSource.of(finished))
    assert made.total == "0.540 + 0.240 + 0.050 = 0.830"


def test_the_fusion_row_shows_each_legs_share_and_the_place_in_the_pool(rows):
    row = rows(0)["rrf"]
    # 1/(60 + 2) = 0.016129, 1/(60 + 1) = 0.016393, together 0.032522; no other chunk stands in both legs.
    assert row.facts == ("vector 1/(60 + 2) = 0.01613", "full text 1/(60 + 1) = 0.01639")
    assert (row.value, row.formula) == ("0.03252", "pool rank 1 of 3")


def test_the_access_row_names_the_grant(rows):
    assert rows(0)["access"].facts == (
        "compartment Engineering through group platform; sensitivity internal ≤ clearance confidential",
    )


def test_a_hit_that_was_preferred_to_a_copy_says_so(rows):
    assert rows(0)["dedupe"].facts == ("preferred to 1 chunk with duplicate or near-duplicate text",)
    assert "dedupe" not in rows(1)


def test_a_drop_for_another_reason_is_no_copy(rows, finished, make_outcome):
    drop = Drop(finished.hits[2].chunk_id, DropReason.BUDGET, f"same text as {finished.hits[0].chunk_id}")
    assert "dedupe" not in rows(0, make_outcome(drops=(drop,)))


def test_a_search_that_ended_before_the_blend_has_no_parts(finished, make_outcome):
    fused = replace(finished.hits[0], contributions={})
    made = ledger(fused, LedgerSource.of(make_outcome(hits=(fused,))))
    assert (made.parts, made.total) == ((), "")


def test_a_signal_without_a_row_of_its_own_is_still_shown(rows, finished, make_outcome):
    hit = finished.hits[0]
    near = replace(hit, contributions={**hit.contributions, "nearness": 0.2}, signals={**hit.signals, "nearness": 4.21})
    row = rows(0, make_outcome(hits=(near,)))["nearness"]
    assert (row.label, row.value, row.facts) == ("Nearness", "+0.200", ("nearness 4.210",))


def reranked(hit, score, score_type, **contributions):
    signals = {**hit.signals, "blend": hit.score, "rerank": score}
    total = sum(contributions.values()) or score
    return replace(
        hit, score=total, score_type=score_type, signals=signals, contributions=contributions or {"rerank": score}
    )


def test_a_reranked_hit_shows_the_logit_and_what_the_blend_knew(finished, make_outcome):
    hit = reranked(finished.hits[0], -1.5, ScoreType.LOGIT)
    made = ledger(hit, LedgerSource.of(make_outcome(hits=(hit,))))
    rerank, dense, fulltext, freshness = made.parts
    assert (rerank.label, rerank.value, rerank.formula) == ("Rerank", "-1.500", "the reranker's order is final")
    # 1 / (1 + e^1.5) = 0.182
    assert rerank.facts == ("logit -1.500", "logistic 0.182", "blend 0.830")
    assert dense.facts == ("cosine 0.713", "rank 2 of 3")
    assert [term.lexeme for term in fulltext.terms] == ["rollback", "stage"]
    assert {row.value for row in (dense, fulltext, freshness)} == {""}
    assert {row.formula for row in (dense, fulltext, freshness)} == {"used in the blended score only"}
    assert made.total == ""


def test_late_interaction_is_one_of_the_parts_that_add_up(finished, make_outcome):
    hit = finished.hits[0]
    hit = reranked(hit, 0.7, ScoreType.MAXSIM, **hit.contributions, rerank=0.4)
    made = ledger(hit, LedgerSource.of(make_outcome(hits=(hit,))))
    assert made.total == "0.540 + 0.240 + 0.050 + 0.400 = 1.230"
    assert made.parts[-1].facts == ("late interaction 0.700", "blend 0.830")
    assert (made.parts[-1].value, made.parts[-1].formula) == ("+0.400", "added to the blend")


@pytest.mark.parametrize(
    ("found", "words"), [(0, "the leg returned no hits"), (64, "not among the leg's 64"), (100, "not in the top 100")]
)
def test_how_far_a_leg_looked_is_told_for_a_hit_that_it_lacks(finished, make_outcome, found, words):
    ranking = finished.state.rankings["dense"][:1] * found
    outcome = make_outcome(rankings={"dense": (), "fulltext": ranking})
    assert leg_rank(finished.hits[1], "fulltext", LedgerSource.of(outcome)) == words


def test_the_quality_row_tells_what_took_from_it(rows, finished, make_outcome):
    hit = finished.hits[0]
    facts = replace(hit.chunk, quality=0.7, quality_parts={"legal": 0.1, "links": 0.2})
    judged = replace(hit, facts=facts, signals={**hit.signals, "quality": 0.7})
    row = rows(0, make_outcome(hits=(judged,)))["quality"]
    assert (row.value, row.facts, row.formula) == ("0.70", ("links -0.20", "legal -0.10"), "minimum 0.3")
    assert "quality" not in rows(0)


def test_near_duplicates_count_as_copies(rows, finished, make_outcome):
    drop = Drop(finished.hits[2].chunk_id, DropReason.DUPLICATE, f"0.93 like {finished.hits[0].chunk_id}")
    assert rows(0, make_outcome(drops=(drop,)))["dedupe"].facts == (
        "preferred to 1 chunk with duplicate or near-duplicate text",
    )
