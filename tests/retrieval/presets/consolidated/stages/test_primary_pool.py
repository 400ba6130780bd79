"""The primary pool: fused by weight, above the floors, cut with quota, asked for again where it is sparse."""

from dataclasses import dataclass, field, replace

import pytest

from retrieval.encoders.cosine_scale import CosineScale
from retrieval.engine.state import DropReason, RequestFilter
from retrieval.engine.types import NOISE
from retrieval.errors import SearchTimeoutError
from retrieval.presets.consolidated.evidence.density import DensityConfig
from retrieval.presets.consolidated.evidence.depth import Grade, GradeConfig
from retrieval.presets.consolidated.evidence.order import QuotaConfig
from retrieval.presets.consolidated.evidence.recovery import RECOVERED, is_beyond_filter
from retrieval.presets.consolidated.evidence.section_state import UNDECIDED, SectionState
from retrieval.presets.consolidated.stages.chunk_retry import RetryChunks, RetryConfig
from retrieval.presets.consolidated.stages.floors import SectionFloors
from retrieval.presets.consolidated.stages.fuse import FuseWeighted, PrimaryConfig
from retrieval.presets.consolidated.stages.quota import CutWithQuota
from retrieval.stages.fuse import FusionConfig
from tests.retrieval.conftest import hit
from tests.retrieval.presets.consolidated.evidence.conftest import numbers, typed
from tests.retrieval.presets.consolidated.stages.sectioned import sectioned

FUSE = FuseWeighted(FusionConfig(), PrimaryConfig())
FLOORS = SectionFloors(GradeConfig(), DensityConfig())
QUOTA = CutWithQuota(QuotaConfig(), GradeConfig())


def ranking(*wanted):
    return tuple(map(hit, wanted))


def test_a_rank_among_vectors_counts_for_more(state):
    rankings = {"dense": ranking(1, 2), "bm25": ranking(3, 2)}
    after = FUSE(sectioned(replace(state, rankings=rankings), (), fetched=9))
    # 2: 0.7/62 + 0.3/62 = 0.01613, 1: 0.7/61 = 0.01148, 3: 0.3/61 = 0.00492.
    assert numbers(after.hits) == [2, 1, 3]
    assert [it.score for it in after.hits] == pytest.approx([0.016129, 0.011475, 0.004918], abs=1e-6)


def test_as_many_are_kept_as_the_section_over_fetches(state):
    rankings = {"dense": ranking(*range(1, 9)), "bm25": ()}
    after = FUSE(sectioned(replace(state, rankings=rankings), (), fetched=5))
    assert numbers(after.hits) == [1, 2, 3, 4, 5]
    assert [(it.reason, it.numbers["rank"]) for it in after.drops] == [
        (DropReason.OUTSIDE_WINDOW, rank) for rank in (6, 7, 8)
    ]


def test_other_ways_to_put_the_question_weigh_as_the_question(state):
    rankings = {"dense": ranking(1), "dense_2": ranking(2), "bm25_3": ranking(3), "other": ranking(4)}
    after = FUSE(sectioned(replace(state, rankings=rankings), (), fetched=9))
    assert [it.score for it in after.hits] == pytest.approx([0.7 / 61, 0.7 / 61, 0.3 / 61, 0.0])


def test_floors_are_relaxed_by_the_grade_of_the_whole_pool(state):
    hits = [typed(number, cosine=cosine) for number, cosine in enumerate((0.51, 0.4, 0.3, 0.15, 0.1))]
    # The mean of the three best is 0.403: C, which leaves 0.9 of the floor: 0.162.
    after = FLOORS(sectioned(state, hits, policy={"score_floor": 0.18}))
    assert (after.part(SectionState).grade, after.part(SectionState).score_floor) == (Grade.C, pytest.approx(0.162))
    assert numbers(after.hits) == [0, 1, 2]
    assert {it.reason for it in after.drops} == {DropReason.BELOW_FLOOR}
    assert (after.events[0]["grade"], after.events[0]["below_score"]) == ("C", 2)


def test_a_good_pool_keeps_the_floor_and_hits_without_a_cosine_stay(state):
    hits = [typed(1, cosine=0.9), typed(2, cosine=0.8), typed(3, cosine=0.7), typed(4), typed(5, cosine=0.17)]
    after = FLOORS(sectioned(state, hits, policy={"score_floor": 0.18}))
    assert (after.part(SectionState).grade, after.part(SectionState).score_floor) == (Grade.A, 0.18)
    assert numbers(after.hits) == [1, 2, 3, 4]


def test_grade_and_floor_go_by_the_scale_of_the_model(state):
    hits = [
        typed(1, cosine=0.76),
        typed(2, cosine=0.52),
        typed(3, cosine=0.46),
        # By a model whose unrelated texts have 0.8: (0.82 - 0.8) / 0.2 is 0.1.
        typed(4, cosine=0.82, **{NOISE: 0.8}),
    ]
    floors = replace(FLOORS, scale=CosineScale(0.4, is_measured=True))
    # (0.6 + 0.2 + 0.1) / 3 is 0.3: D, which leaves 0.75 of the floor.
    after = floors(sectioned(state, hits, policy={"score_floor": 0.16}))
    assert (after.part(SectionState).grade, after.part(SectionState).score_floor) == (Grade.D, pytest.approx(0.12))
    assert numbers(after.hits) == [1, 2]
    assert (
        after.notes[0].text == "The pool is graded D. The minimum scaled similarity is 0.120 (cosine 0.40 counts as 0)."
    )
    assert after.events[0]["cosine_noise"] == 0.4
    assert [drop.detail for drop in after.drops] == [
        "scaled similarity 0.10 (cosine 0.46), floor 0.12",
        "scaled similarity 0.10 (cosine 0.82), floor 0.12",
    ]
    # A model that was not measured has unscaled cosines.
    taken = FLOORS(sectioned(state, hits, policy={"score_floor": 0.16}))
    assert numbers(taken.hits) == [1, 2, 3]
    assert taken.notes[0].text.endswith("(unscaled cosines).")


def test_a_pool_found_by_words_alone_has_no_grade(state):
    after = FLOORS(sectioned(state, [typed(1), typed(2)], policy={"score_floor": 0.18}))
    assert (after.part(SectionState).grade, after.part(SectionState).hint, len(after.hits)) == (None, UNDECIDED, 2)
    assert [note.code for note in after.notes] == ["ungraded"]


def test_the_quality_floor_is_that_of_the_filter(state):
    hits = [typed(1, quality=0.2, cosine=0.9), typed(2, quality=0.25, cosine=0.9)]
    asked = replace(sectioned(state, hits, policy={"quality_floor": 0.9}), filter=RequestFilter(min_quality=0.25))
    after = FLOORS(asked)
    assert numbers(after.hits) == [2]
    # What is left out still counts for the grade: (0.9 + 0.9) / 3.
    assert after.part(SectionState).grade is Grade.A
    assert len(FLOORS(replace(asked, filter=RequestFilter())).hits) == 2


def test_the_cut_keeps_minorities_and_takes_no_recovered_hit(state):
    hits = [typed(number, "pdf") for number in range(6)] + [typed(6, "xlsx"), typed(7, "costar")]
    recovered = typed(8, "pdf", **{RECOVERED: 1.0})
    after = QUOTA(sectioned(state, [*hits, recovered], top_k=4))
    assert numbers(after.hits) == [0, 1, 6, 7, 8]
    assert after.events[0] == {"event": "quota_cut", "pool": 8, "kept": 4, "kept_for_type": 2}
    assert {it.chunk_id.document_id.int for it in after.drops} == {2, 3, 4, 5}


@pytest.mark.parametrize(
    ("grade", "left"), [(None, 4), (Grade.A, 4), (Grade.B, 4), (Grade.C, 5), (Grade.D, 5), (Grade.F, 6)]
)
def test_a_poor_pool_sends_more_to_the_reranker(state, grade, left):
    """4 x 1.1 = 4.4, 4 x 1.25 = 5 and 4 x 1.5 = 6."""
    hits = [typed(number) for number in range(9)]
    after = QUOTA(sectioned(state, hits, top_k=4, grade=grade))
    assert numbers(after.hits) == list(range(left))
    assert ("for the grade" in after.notes[0].text) == (left > 4)


def test_what_a_poor_pool_sends_keeps_to_the_cap(state):
    hits = [typed(number) for number in range(15)]
    policy = {"cap": 10, "complexity": 8}
    assert len(QUOTA(sectioned(state, hits, top_k=8, grade=Grade.F, policy=policy)).hits) == 10
    assert len(QUOTA(sectioned(state, hits, top_k=12, grade=Grade.F, policy=policy)).hits) == 12


def test_a_pool_that_fits_is_left_as_it_is(state):
    asked = sectioned(state, [typed(1), typed(2)], top_k=2)
    assert QUOTA(asked) is asked


@dataclass(frozen=True)
class Finds:
    """Finds other hits by each filter."""

    by_filter: dict
    name: str = "find"
    needs: frozenset = frozenset()
    gives: frozenset = frozenset({"hits"})
    optional: bool = False
    asked: list = field(default_factory=list)

    def __call__(self, state):
        self.asked.append(state.filter)
        assert state.hits == ()
        return replace(state, hits=self.by_filter[state.filter], access_checked=True)


ASKED = RequestFilter(documents=frozenset({hit(1).chunk_id.document_id}))
NARROWED = replace(ASKED, hint="table", min_quality=0.25)


def retried(state, before, found, *, kept=NARROWED, below=3, beyond=()):
    anywhere = {replace(it, documents=frozenset()): beyond for it in (ASKED, NARROWED)}
    finds = Finds({ASKED: found, **anywhere})
    asked = replace(sectioned(state, before, request_filter=ASKED), filter=kept, access_checked=True)
    return RetryChunks(RetryConfig(below=below), (finds,))(asked), finds.asked


def test_a_sparse_pool_is_asked_for_again_without_the_sections_own_filters(state):
    after, asked = retried(state, ranking(1, 2), ranking(3, 4, 5))
    assert asked == [ASKED]
    assert (numbers(after.hits), after.filter) == ([3, 4, 5], ASKED)
    assert after.events == ({"event": "chunk_retry", "before": 2, "found": 3, "taken": True},)
    assert [note.code for note in after.notes] == ["chunk_retry"]


def test_the_larger_pool_stays(state):
    after, _ = retried(state, ranking(1, 2), ranking(3, 4))
    assert (numbers(after.hits), after.filter) == ([1, 2], NARROWED)
    assert after.events[0] == {"event": "chunk_retry", "before": 2, "found": 2, "taken": False}


def test_a_pool_that_is_still_sparse_is_filled_from_beyond_the_documents_and_says_so(state):
    """Document 1 was asked for; 2 and 3 lie beyond it."""
    after, asked = retried(state, ranking(1), (), beyond=ranking(2, 1, 3))
    anywhere = replace(NARROWED, documents=frozenset())
    assert asked == [ASKED, anywhere]
    assert (numbers(after.hits), after.filter) == ([1, 2, 3], anywhere)
    assert [is_beyond_filter(it) for it in after.hits] == [False, True, True]
    assert after.events[1] == {"event": "chunk_retry", "before": 1, "found": 2, "taken": True}
    assert [(note.code, note.degraded) for note in after.notes][1:] == [("chunk_retry_beyond", True)]


def test_beyond_the_documents_the_sections_own_filters_stay_given_up(state):
    after, asked = retried(state, ranking(1), ranking(1, 1), beyond=ranking(2))
    assert asked == [ASKED, RequestFilter()]
    assert numbers(after.hits) == [1, 1, 2]


def test_where_nothing_lies_beyond_the_pool_and_its_filter_stay(state):
    after, _ = retried(state, ranking(1), (), beyond=ranking(1))
    assert (numbers(after.hits), after.filter) == ([1], NARROWED)
    assert [note.degraded for note in after.notes] == [False, False]


def test_an_empty_pool_is_left_to_the_cascade(state):
    after, asked = retried(state, (), (), beyond=ranking(2))
    assert (asked, after.hits) == ([ASKED], ())


@pytest.mark.parametrize(("before", "kept", "below"), [(3, NARROWED, 3), (0, ASKED, 3), (0, NARROWED, 0)])
def test_a_pool_that_is_large_enough_or_was_not_narrowed_is_not_asked_for_again(state, before, kept, below):
    after, asked = retried(state, ranking(*range(before)), (), kept=kept, below=below)
    assert asked == []
    assert after.notes == after.events == ()


def test_a_retry_without_time_leaves_the_pool(state):
    def too_slow(_):
        raise SearchTimeoutError

    too_slow.name = "slow"
    asked = replace(sectioned(state, ranking(1), request_filter=ASKED), filter=NARROWED)
    after = RetryChunks(RetryConfig(), (too_slow,))(asked)
    assert numbers(after.hits) == [1]
    assert {(note.code, note.degraded) for note in after.notes} == {("chunk_retry_timeout", True)}
