"""Rerankers of searches for evidence that fail in one process, seen from another one."""

import pytest

from retrieval.encoders.breaker import BreakerState
from retrieval.encoders.remote_reranker import RemoteReranker, RerankService
from retrieval.presets.consolidated.evidence.rerank_guard import BreakerConfig, RerankGuards
from retrieval.presets.consolidated.evidence.scoring import RerankPlanConfig
from tests.retrieval.presets.consolidated.stages.sectioned import CrossEncoder

SERVICE = RerankService(kind="tei", url="http://127.0.0.1:1/rerank", model="rerank-1")


def failed(guard):
    with pytest.raises(ZeroDivisionError), guard.breaker.guarding():
        raise ZeroDivisionError


@pytest.mark.usefixtures("shared_redis")
@pytest.mark.parametrize(
    ("reranker", "state"), [(RemoteReranker(SERVICE), BreakerState.OPEN), (CrossEncoder(), BreakerState.CLOSED)]
)
def test_a_service_that_fails_is_left_alone_by_all_and_a_local_model_by_its_process(reranker, state):
    one, other = (RerankGuards().guard(reranker, BreakerConfig(failures=1), RerankPlanConfig()) for _ in range(2))
    failed(one)
    assert (one.breaker.state, other.breaker.state) == (BreakerState.OPEN, state)
    changed = RerankGuards().guard(reranker, BreakerConfig(failures=2), RerankPlanConfig())
    assert changed.breaker.state is BreakerState.CLOSED
