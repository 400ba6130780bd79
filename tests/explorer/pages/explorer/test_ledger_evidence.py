"""The ledger and the sentence of a hit that was gathered as evidence, by numbers worked out by hand."""

from dataclasses import replace

import pytest

from explorer.pages.explorer.ledger import LedgerSource, ledger
from explorer.pages.explorer.page import evidence_beats_next, hit_rows
from retrieval.engine.types import ScoreType
from retrieval.presets.consolidated.config import ConsolidatedConfig
from retrieval.presets.consolidated.evidence.scoring import Provider
from retrieval.presets.consolidated.evidence.section_state import SectionState
from tests.retrieval.presets.consolidated.stages.sectioned import ask

CROSS, FALLBACK, NOBODY = Provider
ASK = ask(keep=2, required=("excel",), survivor_floors={"excel": 1})


def evidence(outcome, *hits):
    """Return a search for a section that ended with these hits."""
    state = replace(outcome.state, hits=hits, parts=outcome.state.parts_with(SectionState(ask=ASK)), top_k=len(hits))
    return replace(outcome, state=state, configuration=replace(outcome.configuration, config=ConsolidatedConfig()))


def scored(hit, score, *, source_type="pdf", kind=ScoreType.RELEVANCE, provider=CROSS, parts=None, **signals):
    facts = replace(hit.chunk, source_type=source_type)
    signals = {**hit.signals, "pooled": 0.01, "rerank": score} | signals
    return replace(
        hit,
        score=score,
        score_type=kind,
        provider=str(provider),
        facts=facts,
        signals=signals,
        contributions=parts or {"rerank": score},
    )


@pytest.fixture
def rows(finished):
    """Return the rows of a hit's ledger by signal, the hit among others."""

    def rows_of(hit, *others):
        made = ledger(hit, LedgerSource.of(evidence(finished, hit, *others)))
        return {row.signal: row for row in (*made.parts, *made.decisions)}

    return rows_of


def test_a_logit_is_shown_with_its_share(finished, rows):
    hit = scored(finished.hits[0], -1.5, kind=ScoreType.LOGIT, precedence=0.004, merit_rank=1)
    row = rows(hit)["rerank"]
    # 1 / (1 + e^1.5) = 0.182
    assert (row.facts, row.value, row.amount) == (("logit -1.500", "logistic 0.182"), "-1.500", -1.5)
    assert row.formula == "the cross-encoder's score is final"


def test_late_interaction_adds_up_with_the_place_in_the_pool(finished, rows):
    parts = {"pooled": 0.75, "rerank": 0.5}
    hit = replace(scored(finished.hits[0], 0.7, kind=ScoreType.MAXSIM, parts=parts), score=1.25)
    found = rows(hit)
    assert [found[name].amount for name in ("freshness", "rerank")] == [0.75, 0.5]
    assert found["rerank"].facts == ("late interaction 0.700",)


def test_meaning_and_words_are_the_parts_of_the_fallback(finished, rows):
    # 0.7 x 0.713 = 0.4991
    hit = scored(
        finished.hits[0], 0.6491, kind=ScoreType.BLEND, provider=FALLBACK, parts={"semantic": 0.4991, "bm25": 0.15}
    )
    found = rows(hit)
    assert found["dense"].label == "Vector similarity"
    assert found["dense"].facts == ("cosine 0.713", "rank 2 of 3 in vector")
    assert found["dense"].formula == "0.7 × the cosine"  # noqa: RUF001
    assert (found["fulltext"].label, found["fulltext"].value) == ("Keyword match", "+0.150")
    assert [term.lexeme for term in found["fulltext"].terms] == ["rollback", "stage"]
    made = ledger(hit, LedgerSource.of(evidence(finished, hit)))
    assert made.total == "0.499 + 0.150 = 0.649"


def test_a_hit_that_nothing_scored_says_so(finished, rows):
    hit = replace(finished.hits[0], provider=str(NOBODY), contributions={})
    assert rows(hit)["rerank"].facts == ("the cross-encoder failed for this batch; pool order used",)


def test_the_fusion_row_weighs_the_legs(finished, rows):
    row = rows(scored(finished.hits[1], 0.5))["rrf"]
    # 0.7 / (60 + 1) = 0.011475
    assert row.facts == ("vector 0.7/(60 + 1) = 0.01148",)


def test_what_was_let_back_in_says_why(finished, rows):
    recovered = scored(finished.hits[0], 0.1, source_type="costar", protected=9, recovered=1.0)
    assert rows(recovered)["protect"].facts == ("rank 9, below the top 2", "recovered, since costar was missing")
    needed = rows(scored(finished.hits[0], 0.1, source_type="xlsx", protected=4))["protect"]
    assert needed.facts[1] == "the section needs more of excel"
    assert "protect" not in rows(scored(finished.hits[0], 0.1))


def test_the_boost_and_the_move_are_told(finished, rows):
    first, second = finished.hits[:2]
    moved = scored(second, 0.85, source_type="excel", precedence=0.00267, merit_rank=2)
    found = rows(moved, scored(first, 0.9, merit_rank=1))
    assert (found["precedence"].value, found["precedence"].facts) == (
        "+0.0027",
        ("excel ranks 2 of 4", "adjusted score 0.8527"),
    )
    assert (found["fairness"].value, found["fairness"].facts) == ("moved up by 1", ("rank 2 by score and precedence",))


def test_what_was_let_back_in_moved_no_further_than_the_places_were_shared(finished, rows):
    first, second = finished.hits[:2]
    back = scored(second, 0.1, source_type="xlsx", precedence=0.0, merit_rank=20, protected=22)
    found = rows(back, scored(first, 0.9, merit_rank=1))
    assert (found["fairness"].value, found["protect"].facts[0]) == ("moved down by 2", "rank 22, below the top 2")


def sentence(hit, following):
    return evidence_beats_next(hit, following, rank=3, ask=ASK)


def test_why_one_stands_before_the_next(finished):
    one, other = finished.hits[:2]
    ahead = scored(one, 0.9, precedence=0.0, merit_rank=3)
    assert sentence(ahead, None) == "Last hit in the pool."
    assert sentence(ahead, scored(other, 0.5, precedence=0.0, merit_rank=4)) == "Beats #4: reranker +0.400."
    believed = scored(one, 0.850, source_type="xlsx", precedence=0.0027, merit_rank=3)
    near = scored(other, 0.851, precedence=0.0, merit_rank=4)
    assert sentence(believed, near) == (
        "Beats #4 on precedence: excel over pdf +0.0027, with scores that differ by 0.0010."
    )
    assert sentence(replace(ahead, signals={**ahead.signals, "merit_rank": 5}), near) == (
        "Ranks above #4, whose document or source type already has its share of the top ranks."
    )
    unscored = replace(other, provider=str(NOBODY), contributions={})
    assert sentence(ahead, unscored) == "Ranks above #4, which the cross-encoder did not score."
    assert sentence(unscored, unscored).endswith("neither was scored.")


def test_the_hit_list_tells_it_so(finished):
    first = scored(finished.hits[0], 0.850, source_type="excel", precedence=0.0027, merit_rank=1)
    second = scored(finished.hits[1], 0.851, precedence=0.0, merit_rank=2)
    rows = hit_rows(evidence(finished, first, second))
    assert rows[0]["verdict"].startswith("Beats #2 on precedence")
    assert rows[1]["verdict"] == "Last hit in the pool."
