"""The stage before a cross-encoder that fails as it likes, as a state machine: the breaker's rules hold through it."""

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from retrieval.encoders.breaker import BreakerState
from retrieval.engine.deadline import Deadline
from retrieval.errors import RerankError
from retrieval.presets.consolidated.evidence.rerank_guard import BreakerConfig, RerankGuards
from retrieval.presets.consolidated.evidence.scoring import Provider, RerankPlanConfig, SemanticBm25Config
from retrieval.presets.consolidated.stages.rerank import CrossEncoding, RerankSection
from retrieval.search.runtime import InlineExecutor
from tests.profiles import examples
from tests.retrieval.conftest import Clock
from tests.retrieval.presets.consolidated.stages.sectioned import CrossEncoder, failing, sectioned
from tests.retrieval.presets.consolidated.stages.test_rerank import pool, state_of

CLOSED, OPEN, HALF_OPEN = BreakerState
CONFIG, PLAN = BreakerConfig(), RerankPlanConfig()


class RerankMachine(RuleBasedStateMachine):
    """Drives searches against a model: closed until three failures in a row, open for a minute, two trials to close."""

    def __init__(self):
        super().__init__()
        self.clock = Clock()
        self.guards = RerankGuards(self.clock)
        self.cross_encoder = CrossEncoder()
        guard = self.guards.guard(self.cross_encoder, CONFIG, PLAN)
        cross = CrossEncoding(self.cross_encoder, guard, InlineExecutor())
        self.stage = RerankSection(PLAN, SemanticBm25Config(), cross, self.guards.figures)
        self.breaker, self.expected, self.since, self.failed, self.succeeded = guard.breaker, CLOSED, 0.0, 0, 0
        self.searches = 0

    def look(self):
        if self.expected is OPEN and self.clock.now >= self.since + 60:
            self.expected, self.succeeded = HALF_OPEN, 0

    def search(self, *, seconds, does):
        self.look()
        self.cross_encoder.does, self.cross_encoder.calls = does, []
        self.searches += 1
        begun = replace(state_of(), deadline=Deadline.after(seconds, self.clock))
        hits = pool(4)
        after = self.stage(sectioned(begun, hits))
        assert sorted(it.chunk_id for it in after.hits) == [it.chunk_id for it in hits]
        (provider,) = {it.provider for it in after.hits}
        skips = [it["reason"] for it in after.events if it["event"] == "cross_encoder_skipped"]
        assert len(skips) == (provider == Provider.SEMANTIC_BM25)
        return provider, skips

    @rule(seconds=st.floats(0, 90))
    def wait(self, seconds):
        self.clock.now += seconds

    @rule()
    def answer(self):
        provider, skips = self.search(seconds=20, does=lambda _: None)
        if self.expected is OPEN:
            assert (skips, self.cross_encoder.calls) == (["circuit_breaker"], [])
            return
        assert provider == Provider.CROSS_ENCODER
        self.failed = 0 if self.expected is CLOSED else self.failed
        self.succeeded += self.expected is HALF_OPEN
        if self.expected is HALF_OPEN and self.succeeded == CONFIG.successes:
            self.expected, self.failed = CLOSED, 0

    @rule(error=st.sampled_from([RerankError(), ValueError(), MemoryError()]))
    def fail(self, error):
        _, skips = self.search(seconds=20, does=failing(error))
        if self.expected is OPEN:
            assert (skips, self.cross_encoder.calls) == (["circuit_breaker"], [])
            return
        assert (skips, len(self.cross_encoder.calls)) == (["api_error"], 1)
        self.failed += self.expected is CLOSED
        if self.expected is HALF_OPEN or self.failed == CONFIG.failures:
            self.expected, self.since = OPEN, self.clock.now

    @rule()
    def have_no_time(self):
        _, skips = self.search(seconds=0.01, does=failing(RerankError()))
        assert skips == ["circuit_breaker" if self.expected is OPEN else "budget"]
        assert self.cross_encoder.calls == []

    @invariant()
    def agree(self):
        self.look()
        assert self.breaker.state is self.expected
        figures = self.guards.figures
        assert sum(figures.providers.values()) == self.searches
        assert sum(figures.skips.values()) == figures.providers[Provider.SEMANTIC_BM25]


RerankMachine.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=40, deadline=None)
TestReranking = RerankMachine.TestCase
