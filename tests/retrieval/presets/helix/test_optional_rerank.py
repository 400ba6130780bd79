"""The guard rail of a reranker on a processor: off by default, thirty candidates at the most, no service."""

from dataclasses import dataclass, replace

import pytest

from corecube.errors import ConfigError
from retrieval.encoders.remote_reranker import RemoteReranker, RerankService
from retrieval.engine.types import ScoreType
from retrieval.errors import OverridesError, RerankError
from retrieval.index import active
from retrieval.presets.catalog import preset_named
from retrieval.presets.helix.config import HelixConfig
from retrieval.presets.helix.optional_rerank import MAX_PAIRS, OptionalRerankConfig, optional_rerank
from retrieval.search import runtime


class Local:
    name = "local"
    score_type = ScoreType.LOGIT
    blend_weight = None
    problem = ""

    def score(self, query, texts, *, timeout_seconds):  # noqa: ARG002 -- the protocol's
        return [0.0 for _ in texts]


@dataclass(frozen=True)
class Unbounded:
    """A config that somebody made past the bounds."""

    candidates: int
    reserve_ms: int = 100


def test_it_is_off_by_default():
    assert HelixConfig().rerank.candidates == 0
    assert optional_rerank(HelixConfig().rerank, Local()) == ()


def test_up_to_thirty_candidates_are_scored():
    (stage,) = optional_rerank(OptionalRerankConfig(candidates=MAX_PAIRS), Local())
    assert (stage.name, stage.config.candidates) == ("rerank", 30)


@pytest.mark.parametrize("candidates", [31, 100])
def test_more_are_refused_when_the_config_is_made_and_when_the_stage_is(candidates):
    with pytest.raises(ConfigError, match=r"between 0 and 30"):
        OptionalRerankConfig(candidates=candidates)
    with pytest.raises(ConfigError, match="at most 30"):
        optional_rerank(Unbounded(candidates), Local())


@pytest.mark.parametrize("candidates", [1, 30, 31, 100])
def test_a_request_cannot_switch_it_on_or_past_the_bound(candidates):
    with pytest.raises(OverridesError):
        HelixConfig().with_overrides({"rerank.candidates": candidates})


def test_a_request_can_lower_what_an_admin_allowed():
    allowed = HelixConfig().with_values({"rerank.candidates": 20})
    assert allowed.with_overrides({"rerank.candidates": 10}).rerank.candidates == 10


def test_no_service_is_asked():
    service = RerankService(kind="tei", url="http://localhost:1/rerank")
    (stage,) = optional_rerank(OptionalRerankConfig(candidates=10), RemoteReranker(service))
    with pytest.raises(RerankError, match="uses no remote service"):
        stage.reranker.score("q", ["t"], timeout_seconds=1)


def test_in_the_async_tier_a_service_scores_many_and_a_model_on_this_machine_thirty():
    config = OptionalRerankConfig(queued_candidates=100)
    service = RemoteReranker(RerankService(kind="tei", url="http://localhost:1/rerank"))
    (stage,) = optional_rerank(config, service, is_queued=True)
    assert (stage.config.candidates, stage.reranker.reranker) == (100, service)
    (stage,) = optional_rerank(config, Local(), is_queued=True)
    assert stage.config.candidates == MAX_PAIRS
    assert optional_rerank(config, service) == ()
    assert optional_rerank(OptionalRerankConfig(), service, is_queued=True) == ()


def test_the_preset_has_no_reranker_unless_an_admin_allows_one(world):
    tools = replace(runtime.resources(active.encoder()), reranker=Local())
    helix = preset_named("helix")
    assert "rerank" not in str(helix.build(helix.defaults, tools))
    allowed = helix.defaults.with_values({"rerank.candidates": 20})
    assert "signals >> rerank" in str(helix.build(allowed, tools))
