import pytest
from hypothesis import given
from hypothesis import strategies as st

from corecube.errors import CoreCubeError
from retrieval.errors import SearchTimeoutError
from retrieval.presets.consolidated.evidence.cascade import (
    Cascade,
    CascadeConfig,
    CascadeWorld,
    QualityGate,
    Tier,
    backoff_seconds,
    tiers_for,
)
from tests.retrieval.presets.consolidated.evidence.conftest import numbers, typed

CONFIG = CascadeConfig()
GATE = QualityGate.of(quality_floor=0.25, score_floor=0.18, config=CONFIG)
GOOD = (typed(1, cosine=0.5),)


class World:
    """Time that passes only by waiting."""

    def __init__(self, seconds=60.0):
        self.now, self.end, self.slept = 0.0, seconds, []

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds

    def run(self, found, **facts):
        """Run a cascade whose tiers find what `found` says; an exception is raised."""
        self.asked = []

        def search(tier):
            self.asked.append(tier)
            answer = found.get(tier, ())
            if isinstance(answer, Exception):
                raise answer
            return answer

        world = CascadeWorld(
            clock=lambda: self.now, sleep=self.sleep, draw=lambda: 0.5, remaining_seconds=lambda: self.end - self.now
        )
        return Cascade(search=search, gate=GATE, config=CONFIG, world=world, **facts).run()


def test_the_tiers_in_their_order():
    assert tiers_for(has_documents=True, has_structure=True) == tuple(Tier)
    assert [*Tier] == [Tier.DOCUMENTS, Tier.STRUCTURE, Tier.COMPARTMENT, Tier.INDEXES, Tier.LEXICAL]
    assert tiers_for(has_documents=False, has_structure=False) == (Tier.COMPARTMENT, Tier.INDEXES, Tier.LEXICAL)


def test_the_waits_double_up_to_the_longest():
    assert [backoff_seconds(attempt, draw=0.5, config=CONFIG) for attempt in range(1, 6)] == [0.5, 1.0, 2.0, 4.0, 4.0]
    assert backoff_seconds(2, draw=0.0, config=CONFIG) == 0.75
    assert backoff_seconds(2, draw=1.0, config=CONFIG) == 1.25


@given(st.integers(1, 60), st.floats(0, 1))
def test_jitter_stays_within_a_quarter(attempt, draw):
    middle = backoff_seconds(attempt, draw=0.5, config=CONFIG)
    assert 0.75 * middle - 1e-9 <= backoff_seconds(attempt, draw=draw, config=CONFIG) <= 1.25 * middle + 1e-9


def test_the_first_tier_that_finds_evidence_ends_it():
    world = World()
    found = world.run({Tier.COMPARTMENT: GOOD}, has_documents=True)
    assert (found.hits, found.tier) == (GOOD, Tier.COMPARTMENT)
    assert world.asked == [Tier.DOCUMENTS, Tier.COMPARTMENT]
    assert world.slept == [0.5]
    assert [(it["event"], it["tier"], it["accepted"], it["level"]) for it in found.events] == [
        ("recovery_tier_result", "document_filter_relaxation", False, "warning"),
        ("recovery_tier_result", "compartment_sweep", True, "info"),
    ]


def test_nothing_anywhere_ends_with_the_terminal_event():
    world = World()
    found = world.run({}, has_documents=True, has_structure=True)
    assert (found.hits, found.tier) == ((), None)
    assert world.asked == list(Tier)
    assert world.slept == [0.5, 1.0, 2.0, 4.0]
    assert found.events[-1] == {"event": "fallback_exhausted", "tiers": 5, "level": "warning"}


def test_a_sweep_is_expected_where_no_documents_were_named():
    for has_documents, level in ((False, "info"), (True, "warning")):
        found = World().run({Tier.LEXICAL: GOOD}, has_documents=has_documents)
        assert {it["tier"]: it["level"] for it in found.events}["compartment_sweep"] == level


def test_a_tier_whose_chunks_are_all_rejected_has_failed():
    noise = (typed(1, quality=0.2, cosine=0.5), typed(2, tokens=4, cosine=0.5), typed(3, cosine=0.08))
    world = World()
    found = world.run({Tier.COMPARTMENT: noise, Tier.LEXICAL: (typed(4),)})
    assert numbers(found.hits) == [4]
    assert [(it.found, it.passed) for it in found.results] == [(3, 0), (0, 0), (1, 1)]


def test_what_words_alone_found_may_lie_far_from_the_query():
    far = (typed(1, cosine=0.01), typed(2, quality=0.2, cosine=0.01))
    found = World().run(dict.fromkeys(Tier, far))
    assert found.tier is Tier.LEXICAL
    assert numbers(found.hits) == [1]


@pytest.mark.parametrize(("count", "tier"), [(3, Tier.STRUCTURE), (2, Tier.COMPARTMENT)])
def test_three_passing_chunks_of_the_structure_make_the_sweep_needless(count, tier):
    world = World()
    structured = tuple(typed(number, cosine=0.5) for number in range(10, 10 + count))
    found = world.run({Tier.STRUCTURE: structured, Tier.COMPARTMENT: (*GOOD, structured[0])}, has_structure=True)
    assert found.tier is tier
    assert numbers(found.hits) == ([10, 11, 12] if count == 3 else [10, 11, 1])


def test_few_chunks_of_the_structure_are_better_than_nothing():
    found = World().run({Tier.STRUCTURE: GOOD}, has_structure=True)
    assert (found.hits, found.tier) == (GOOD, Tier.STRUCTURE)
    assert len(found.results) == 4


def test_a_tier_that_fails_is_a_tier_without_chunks():
    world = World()
    found = world.run({Tier.COMPARTMENT: SearchTimeoutError(), Tier.INDEXES: GOOD})
    assert found.hits == GOOD
    assert found.events[0]["error"] == "SearchTimeoutError"
    with pytest.raises(KeyError):
        World().run({Tier.COMPARTMENT: KeyError()})
    assert issubclass(SearchTimeoutError, CoreCubeError)


def test_no_wait_is_begun_that_would_outlast_the_time():
    world = World(seconds=1.2)
    found = world.run({Tier.LEXICAL: GOOD})
    assert world.asked == [Tier.COMPARTMENT, Tier.INDEXES]
    assert world.now == 0.5
    assert (found.hits, found.is_cut_short) == ((), True)
    assert found.events[-1]["event"] == "out_of_time"


@given(st.dictionaries(st.sampled_from(Tier), st.integers(0, 4)), st.booleans(), st.booleans(), st.floats(0, 10))
def test_every_run_ends_in_time_with_an_event_for_each_tier(found, has_documents, has_structure, seconds):
    world = World(seconds)
    answers = {tier: tuple(typed(number, cosine=0.5) for number in range(count)) for tier, count in found.items()}
    done = world.run(answers, has_documents=has_documents, has_structure=has_structure)
    assert world.now <= seconds
    assert len(done.results) == len(world.asked)
    order = list(tiers_for(has_documents=has_documents, has_structure=has_structure))
    assert world.asked == order[: len(world.asked)]
    if not done.hits and not done.is_cut_short:
        assert world.asked == order
