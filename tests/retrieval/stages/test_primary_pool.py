"""The primary pool: fused by weight, above the floors, cut with quota, asked for again where it is sparse."""

from dataclasses import dataclass, field, replace

import pytest

from retrieval.config import FusionConfig
from retrieval.consolidated_config import RetryConfig
from retrieval.errors import SearchTimeoutError
from retrieval.evidence.config import GradeConfig, PrimaryConfig, QuotaConfig
from retrieval.evidence.grades import Grade
from retrieval.evidence.recovery import RECOVERED
from retrieval.stages import CutWithQuota, FuseWeighted, RetryChunks, SectionFloors
from retrieval.types import DropReason, RequestFilter
from tests.retrieval.conftest import hit
from tests.retrieval.evidence.conftest import numbers, typed
from tests.retrieval.stages.sectioned import sectioned

FUSE = FuseWeighted(FusionConfig(), PrimaryConfig())
FLOORS = SectionFloors(GradeConfig())
QUOTA = CutWithQuota(QuotaConfig())


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
    assert (after.section.grade, after.section.score_floor) == (Grade.C, pytest.approx(0.162))
    assert after.section.cosines == (0.51, 0.4, 0.3, 0.15, 0.1)
    assert numbers(after.hits) == [0, 1, 2]
    assert {it.reason for it in after.drops} == {DropReason.BELOW_FLOOR}
    assert (after.events[0]["grade"], after.events[0]["below_score"]) == ("C", 2)


def test_a_good_pool_keeps_the_floor_and_hits_without_a_cosine_stay(state):
    hits = [typed(1, cosine=0.9), typed(2, cosine=0.8), typed(3, cosine=0.7), typed(4), typed(5, cosine=0.17)]
    after = FLOORS(sectioned(state, hits, policy={"score_floor": 0.18}))
    assert (after.section.grade, after.section.score_floor) == (Grade.A, 0.18)
    assert numbers(after.hits) == [1, 2, 3, 4]


def test_a_pool_found_by_words_alone_has_no_grade(state):
    after = FLOORS(sectioned(state, [typed(1), typed(2)], policy={"score_floor": 0.18}))
    assert (after.section.grade, after.section.cosines, len(after.hits)) == (None, None, 2)
    assert [note.code for note in after.notes] == ["ungraded"]


def test_the_quality_floor_is_that_of_the_filter(state):
    hits = [typed(1, quality=0.2, cosine=0.9), typed(2, quality=0.25, cosine=0.9)]
    asked = replace(sectioned(state, hits, policy={"quality_floor": 0.9}), filter=RequestFilter(least_quality=0.25))
    after = FLOORS(asked)
    assert numbers(after.hits) == [2]
    # What is left out still counts for the grade: it was found.
    assert len(after.section.cosines) == 2
    assert len(FLOORS(replace(asked, filter=RequestFilter())).hits) == 2


def test_the_cut_keeps_minorities_and_takes_no_recovered_hit(state):
    hits = [typed(number, "pdf") for number in range(6)] + [typed(6, "xlsx"), typed(7, "costar")]
    recovered = typed(8, "pdf", **{RECOVERED: 1.0})
    after = QUOTA(sectioned(state, [*hits, recovered], top_k=4))
    assert numbers(after.hits) == [0, 1, 6, 7, 8]
    assert after.events[0] == {"event": "quota_cut", "pool": 8, "kept": 4, "kept_for_type": 2}
    assert {it.chunk_id.document_id.int for it in after.drops} == {2, 3, 4, 5}


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
NARROWED = replace(ASKED, hint="table", least_quality=0.25)


def retried(state, before, found, *, kept=NARROWED, below=3):
    finds = Finds({ASKED: found})
    asked = replace(sectioned(state, before, asked_filter=ASKED), filter=kept, access_checked=True)
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
    assert after.events == ({"event": "chunk_retry", "before": 2, "found": 2, "taken": False},)


@pytest.mark.parametrize(("before", "kept", "below"), [(3, NARROWED, 3), (0, ASKED, 3), (0, NARROWED, 0)])
def test_a_pool_that_is_large_enough_or_was_not_narrowed_is_not_asked_for_again(state, before, kept, below):
    after, asked = retried(state, ranking(*range(before)), (), kept=kept, below=below)
    assert asked == []
    assert after.notes == after.events == ()


def test_a_retry_without_time_leaves_the_pool(state):
    def too_slow(_):
        raise SearchTimeoutError

    too_slow.name = "slow"
    asked = replace(sectioned(state, ranking(1), asked_filter=ASKED), filter=NARROWED)
    after = RetryChunks(RetryConfig(), (too_slow,))(asked)
    assert numbers(after.hits) == [1]
    assert [(note.code, note.degraded) for note in after.notes] == [("chunk_retry_timeout", True)]
