import math
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.engine.state import DropReason, Query
from retrieval.engine.types import ChunkFacts, ScoreType
from retrieval.errors import RerankBreakerOpenError, RerankError, RerankTimeoutError
from retrieval.stages.rerank import Rerank, RerankConfig, reranked
from tests.retrieval.conftest import chunk_id, hit


class Scores:
    """A reranker that gives each text the number it ends with times `sign`, and keeps what it was given."""

    name = "scores"
    problem = ""

    def __init__(self, *, sign=1.0, score_type=ScoreType.LOGIT, blend_weight=None, error=None):
        self.score_type = score_type
        self.blend_weight = blend_weight
        self._sign = sign
        self._error = error
        self.calls = []

    def score(self, query, texts, *, timeout_seconds):
        self.calls.append((query, texts, timeout_seconds))
        if self._error:
            raise self._error
        return [self._sign * float(text.rsplit(" ", 1)[1]) for text in texts]


def blended(count):
    """Return hits 1 to `count` in the blend's order, with scores that fall by 0.01 from 0.9."""
    return tuple(
        replace(
            hit(number, 0.9 - number / 100, cosine=0.5), contributions={"dense": 0.5, "freshness": 0.4 - number / 100}
        )
        for number in range(1, count + 1)
    )


def run(state, reranker, *, hits=None, top_k=10, **config):
    hits = blended(5) if hits is None else hits
    return Rerank(RerankConfig(**config), reranker)(replace(state, hits=hits, top_k=top_k))


def numbers(state):
    return [it.chunk_id.document_id.int for it in state.hits]


def codes(state):
    return [(note.code, note.degraded) for note in state.notes]


def test_a_reranker_without_a_weight_has_the_last_word(state):
    after = run(state, Scores())
    assert numbers(after) == [5, 4, 3, 2, 1]
    first = after.hits[0]
    assert (first.score, first.score_type, first.contributions) == (5.0, ScoreType.LOGIT, {"rerank": 5.0})
    assert first.signals == {"cosine": 0.5, "blend": pytest.approx(0.85), "rerank": 5.0}
    assert codes(after) == [("reranked", False)]


def test_a_reranker_with_a_weight_is_added_to_the_blend(state):
    after = run(state, Scores(sign=0.1, score_type=ScoreType.MAXSIM, blend_weight=0.5))
    assert numbers(after) == [5, 4, 3, 2, 1]
    # The scores are 0.1 to 0.5: the best is worth the whole weight, 0.85 + 0.5 x 1, the middle one half of it.
    first, middle = after.hits[0], after.hits[2]
    assert first.score == pytest.approx(1.35)
    assert middle.score == pytest.approx(0.87 + 0.5 * 0.5)
    assert first.score_type == ScoreType.MAXSIM
    assert first.contributions == pytest.approx({"dense": 0.5, "freshness": 0.35, "rerank": 0.5})
    assert first.signals["rerank"] == 0.5
    assert sum(first.contributions.values()) == pytest.approx(first.score)


def test_scores_that_hardly_differ_add_little(state):
    after = run(state, Scores(sign=0.01, score_type=ScoreType.MAXSIM, blend_weight=0.5))
    # The scores are 0.01 to 0.05, of a range that counts as 0.25: the fifth hit adds 0.04 / 0.25 of the weight.
    parts = {number: hit.contributions["rerank"] for number, hit in zip(numbers(after), after.hits, strict=True)}
    assert parts == pytest.approx({5: 0.08, 4: 0.06, 3: 0.04, 2: 0.02, 1: 0.0})


def test_equal_scores_keep_the_lower_chunk_id_first(state):
    assert numbers(run(state, Scores(sign=0.0), hits=tuple(reversed(blended(3))))) == [1, 2, 3]


def test_it_reads_the_query_without_syntax_and_each_text_with_its_place(state):
    facts = replace(hit(1).facts, title="Runbook", heading_path=("Staging", "Rollback"), text="Do it 7")
    reranker = Scores()
    query = Query('"roll back" -staging', '"roll back" -staging', "roll back")
    run(replace(state, query=query), reranker, hits=(replace(hit(1), facts=facts),))
    assert reranker.calls[0][:2] == ("roll back", ["Runbook > Staging > Rollback\nDo it 7"])


def test_the_texts_are_those_that_were_embedded():
    from retrieval.ingest.vectors import ChunkText, DocumentText
    from retrieval.text.document import in_context

    document = DocumentText("Title", (ChunkText(("A", "B"), "The text."),))
    assert document.embedded == [in_context("Title", ("A", "B"), "The text.")] == ["Title > A > B\nThe text."]


def test_only_the_best_are_scored_and_the_others_follow_as_far_as_they_are_wanted(state):
    reranker = Scores()
    after = run(state, reranker, hits=blended(9), candidates=3, top_k=5)
    assert len(reranker.calls[0][1]) == 3
    assert numbers(after) == [3, 2, 1, 4, 5]
    assert [it.score_type for it in after.hits] == [ScoreType.LOGIT] * 3 + [ScoreType.BLEND] * 2
    assert [(drop.chunk_id, drop.reason, drop.detail) for drop in after.drops] == [
        (chunk_id(number), DropReason.RERANK_CUT, f"blend rank {number}, window 5") for number in (6, 7, 8, 9)
    ]


def test_those_behind_stay_behind_whatever_they_score(state):
    # Logits of -1 to -3 are below every blend.
    after = run(state, Scores(sign=-1.0), hits=blended(5), candidates=3, top_k=5)
    assert numbers(after) == [1, 2, 3, 4, 5]
    assert after.hits[2].score < after.hits[3].score


def test_what_is_wanted_beyond_the_candidates_decides_nothing_when_few_are_wanted(state):
    after = run(state, Scores(), hits=blended(9), candidates=6, top_k=2)
    assert numbers(after) == [6, 5, 4, 3, 2, 1]
    assert after.drops[0].detail == "blend rank 7, window 6"


def test_without_a_reranker_the_blend_stands_and_nothing_is_degraded(state):
    after = run(state, None, candidates=2, top_k=2)
    assert after.hits == blended(5)
    assert (after.drops, codes(after)) == ((), [("rerank_none", False)])


def test_without_hits_nobody_is_asked(state):
    reranker = Scores()
    after = run(state, reranker, hits=())
    assert (reranker.calls, codes(after)) == ([], [])


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RerankError("It broke."), "rerank_failed"),
        (RerankTimeoutError(), "rerank_timeout"),
        (RerankBreakerOpenError(), "rerank_breaker_open"),
        (ZeroDivisionError("secret text"), "rerank_failed"),
        (MemoryError(), "rerank_failed"),
    ],
)
def test_a_reranker_that_fails_leaves_the_blend_and_says_so(state, error, code, caplog):
    after = run(state, Scores(error=error), hits=blended(50), candidates=3, top_k=5)
    assert after.hits == blended(50)
    assert (after.drops, codes(after)) == ((), [(code, True)])
    assert after.notes[0].text.endswith("The blend's order is used.")
    assert "secret" not in after.notes[0].text + caplog.text


@pytest.mark.parametrize("answer", [[], [1.0], [1.0] * 6, [1.0, 2.0, math.nan, 4.0, 5.0], [math.inf] * 5])
def test_scores_that_make_no_sense_leave_the_blend(state, answer):
    reranker = Scores()
    reranker.score = lambda *_, **__: answer
    after = run(state, reranker)
    assert after.hits == blended(5)
    assert codes(after) == [("rerank_failed", True)]


def test_its_time_ends_a_reserve_before_optional_stages_are_skipped(state, clock):
    # 85 % of a second, less a quarter that is gone and a tenth in reserve.
    clock.now = 0.25
    reranker = Scores()
    run(state, reranker, reserve_ms=100)
    assert reranker.calls[0][2] == pytest.approx(0.5)


def test_with_no_time_left_it_is_not_asked(state, clock):
    clock.now = 0.8
    reranker = Scores()
    after = run(state, reranker, reserve_ms=100)
    assert (reranker.calls, after.hits) == ([], blended(5))
    assert codes(after) == [("rerank_timeout", True)]


@given(
    scores=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20),
    weight=st.none() | st.floats(0, 2),
    seed=st.randoms(),
)
def test_reranking_is_a_permutation_in_falling_order_whatever_the_order_before(scores, weight, seed):
    hits = list(blended(len(scores)))
    found = reranked(tuple(hits), scores, ScoreType.LOGIT, weight)
    assert sorted(it.chunk_id for it in found) == [it.chunk_id for it in hits]
    assert all(one.score >= next_one.score for one, next_one in pairwise(found))
    assert all(sum(it.contributions.values()) == pytest.approx(it.score) for it in found)
    pairs = list(zip(hits, scores, strict=True))
    seed.shuffle(pairs)
    assert reranked(tuple(h for h, _ in pairs), [s for _, s in pairs], ScoreType.LOGIT, weight) == found


def test_facts_are_untouched(state):
    assert all(isinstance(it.facts, ChunkFacts) for it in run(state, Scores()).hits)
