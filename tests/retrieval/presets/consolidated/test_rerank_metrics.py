"""What /metrics tells of reranking."""

import pytest

from retrieval.errors import RerankError
from retrieval.models import PresetVersion
from retrieval.operations.metrics import rerank_metrics
from retrieval.presets.consolidated.evidence.density import DensityConfig
from retrieval.presets.consolidated.evidence.rerank_guard import BreakerConfig, RerankGuards
from retrieval.presets.consolidated.evidence.scoring import Provider, RerankPlanConfig, RerankSkip
from retrieval.search import runtime
from retrieval.search.request import SearchRequest
from retrieval.search.service import search
from tests.retrieval.operations.scrapes import exposition
from tests.retrieval.presets.consolidated.stages.sectioned import CrossEncoder, failing


def lines(guards):
    text = exposition(rerank_metrics(guards, DensityConfig()))
    return [it for it in text.splitlines() if not it.startswith("#")]


def test_breakers_providers_skips_and_cuts_are_told():
    guards = RerankGuards()
    cross_encoder = CrossEncoder()
    cross_encoder.name = 'my "own"\\model'
    guard = guards.guard(cross_encoder, BreakerConfig(failures=1), RerankPlanConfig())
    with pytest.raises(RerankError), guard.breaker.guarding():
        raise RerankError
    guards.figures.scored(Provider.SEMANTIC_BM25)
    guards.figures.skipped(RerankSkip.API_ERROR)
    for is_applied in (True, False, False):
        guards.figures.tightened("memo/figures", is_applied=is_applied)
    guards.figures.tightened("memo/terms", is_applied=True)
    assert lines(guards) == [
        r'corecube_rerank_breaker{reranker="my \"own\"\\model"} 2.0',
        r'corecube_rerank_chunk_seconds{reranker="my \"own\"\\model"} 0.025',
        'corecube_rerank_pools_total{provider="cross_encoder"} 0.0',
        'corecube_rerank_pools_total{provider="semantic_bm25"} 1.0',
        'corecube_rerank_pools_total{provider="none"} 0.0',
        'corecube_rerank_skips_total{reason="circuit_breaker"} 0.0',
        'corecube_rerank_skips_total{reason="budget"} 0.0',
        'corecube_rerank_skips_total{reason="api_error"} 1.0',
        'corecube_tighten_searches_total{section="memo/figures"} 3.0',
        'corecube_tighten_searches_total{section="memo/terms"} 1.0',
        'corecube_tighten_cuts_total{section="memo/figures"} 1.0',
        'corecube_tighten_cuts_total{section="memo/terms"} 1.0',
        'corecube_tighten_rate_in_band{section="memo/figures"} 1.0',
        'corecube_tighten_rate_in_band{section="memo/terms"} 0.0',
    ]


def test_the_band_is_that_of_the_live_version(client, world):
    client.force_login(world.alice)
    assert "is within 0.02 to 0.4." in client.get("/metrics").content.decode()
    PresetVersion.objects.create(preset="consolidated", number=1, status="live", values={"density.rate_to": 0.3})
    assert "is within 0.02 to 0.3." in client.get("/metrics").content.decode()


def test_searches_of_the_process_are_counted_and_share_one_breaker(client, world, monkeypatch):
    cross_encoder = CrossEncoder()
    cross_encoder.does = failing(RerankError())
    monkeypatch.setattr(runtime, "reranker", lambda: cross_encoder)
    for _ in range(4):
        outcome = search(SearchRequest(text="rollback", preset="consolidated"), principal=world.principal("alice"))
        assert outcome.hits
    assert "rerank_breaker_open" in outcome.state.degraded
    assert len(cross_encoder.calls) == 3
    client.force_login(world.alice)
    text = client.get("/metrics").content.decode()
    assert 'corecube_rerank_breaker{reranker="numbers"} 2.0' in text
    assert 'corecube_rerank_skips_total{reason="api_error"} 3.0' in text
    assert 'corecube_rerank_skips_total{reason="circuit_breaker"} 1.0' in text
    assert 'corecube_rerank_pools_total{provider="semantic_bm25"} 4.0' in text
    assert 'corecube_tighten_searches_total{section="question/question"} 4.0' in text
