"""What one request sets for itself leaves the guard before the cross-encoder alone."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace

import pytest

from retrieval.encoders.breaker import BreakerState
from retrieval.encoders.remote_reranker import RemoteReranker, RerankService
from retrieval.encoders.reranker import without_breaker
from retrieval.engine.deadline import Deadline
from retrieval.errors import OverridesError, RerankError
from retrieval.models import PresetVersion
from retrieval.presets.consolidated.config import ConsolidatedConfig
from retrieval.presets.consolidated.evidence.rerank_guard import BreakerConfig, RerankGuards
from retrieval.presets.consolidated.evidence.scoring import RerankPlanConfig, SemanticBm25Config
from retrieval.presets.consolidated.stages.rerank import CrossEncoding, RerankSection
from retrieval.search import runtime
from retrieval.search.request import SearchRequest
from retrieval.search.service import search
from tests.retrieval.presets.consolidated.evidence.conftest import typed
from tests.retrieval.presets.consolidated.stages.sectioned import CrossEncoder, sectioned

SHARED = {
    "breaker.failures",
    "breaker.open_seconds",
    "breaker.successes",
    "rerank.chunk_ms",
    "rerank.learning",
    "rerank.forgetting",
}


def find(world, tools, who="bob", **request):
    asked = SearchRequest(text="rollback", preset="consolidated", **request)
    return search(asked, principal=world.principal(who), resources=tools)


@pytest.fixture
def cross_encoder():
    made = CrossEncoder()
    made.does = lambda texts: [0.5] * len(texts)
    return made


@pytest.fixture
def tools(world, cross_encoder):
    """Return tools whose cross-encoder has failed so often that it is left alone."""
    tools = replace(runtime.resources(), reranker=cross_encoder)
    guard = tools.part(RerankGuards).guard(cross_encoder, BreakerConfig(), RerankPlanConfig())
    for _ in range(3):
        with suppress(RerankError), guard.breaker.guarding():
            raise RerankError
    return tools


def test_what_all_searches_share_is_marked():
    assert {facts.name for facts in ConsolidatedConfig.declared_below() if facts.is_shared} == SHARED


@pytest.mark.parametrize("name", sorted(SHARED))
def test_a_request_cannot_change_it(world, tools, cross_encoder, name):
    value = ConsolidatedConfig().values()[name]
    with pytest.raises(OverridesError, match="a request cannot change it"):
        find(world, tools, overrides={name: value})
    assert cross_encoder.calls == []


def test_a_searchs_own_numbers_neither_pass_an_open_breaker_nor_drive_it_out(world, tools, cross_encoder):
    for number in range(1, 4):
        outcome = find(world, tools, overrides={"rerank.min_budget_ms": number})
        assert "rerank_breaker_open" in outcome.state.degraded
    assert cross_encoder.calls == []
    assert tools.part(RerankGuards).states == {"numbers": BreakerState.OPEN}


def test_a_drafts_numbers_do_not_become_those_of_all(world, tools, cross_encoder):
    PresetVersion.objects.create(
        preset="consolidated", number=1, status="draft", values={"breaker.failures": 9}, created_by=world.alice
    )
    find(world, tools, "alice", draft=True)
    assert len(cross_encoder.calls) == 1
    assert tools.part(RerankGuards).states == {"numbers": BreakerState.OPEN}


def test_a_services_own_breaker_does_not_stand_behind_the_guard(world, rerank_server):
    rerank_server.give(b"", status="500 Oops")
    service = RemoteReranker(RerankService(kind="vllm", url=rerank_server.url, model="m"))
    tools = replace(runtime.resources(), reranker=service)
    for failures in range(1, 4):
        find(world, tools)
        assert tools.part(RerankGuards).states == {"m": BreakerState.OPEN if failures == 3 else BreakerState.CLOSED}
    assert service.problem == ""
    find(world, tools)
    assert len(rerank_server.requests) == 3
    service.close()


def test_one_search_is_one_failure_however_many_of_its_batches_failed(state, rerank_server):
    """With a second breaker behind the guard the first search alone opened that one, while the guard was closed."""
    rerank_server.give(b"", status="500 Oops")
    service = RemoteReranker(RerankService(kind="vllm", url=rerank_server.url, model="m"))
    guards, reranker = RerankGuards(), without_breaker(service)
    guard = guards.guard(reranker, BreakerConfig(), RerankPlanConfig())
    hits = tuple(typed(number, "pdf", cosine=0.5) for number in range(130))
    begun = replace(sectioned(state, hits), deadline=Deadline.after(60.0))
    with ThreadPoolExecutor(4) as executor:
        cross = CrossEncoding(reranker, guard, executor)
        stage = RerankSection(RerankPlanConfig(), SemanticBm25Config(), cross, guards.figures)
        reasons = [stage(begun).events[0]["reason"] for _ in range(4)]
    assert reasons == ["api_error"] * 3 + ["circuit_breaker"]
    assert len(rerank_server.requests) == 9
    service.close()


def test_without_its_breaker_a_service_is_asked_whenever_it_is_called(rerank_server):
    rerank_server.give(b"", status="500 Oops")
    service = RemoteReranker(RerankService(kind="vllm", url=rerank_server.url, model="m"))
    bare = service.without_breaker()
    for _ in range(5):
        with pytest.raises(RerankError, match="500"):
            bare.score("query", ["text"], timeout_seconds=5.0)
    assert (bare.problem, service.problem, bare.name) == ("", "", "m")
    service.close()
