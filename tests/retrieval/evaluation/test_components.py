"""Runs over another embedding index, without the reranker, by another language model."""

import pytest

from corecube.errors import InvalidRequestError
from retrieval.evaluation import components, gates, runs
from retrieval.evaluation.components import Components
from retrieval.evaluation.runs import RunRequest
from retrieval.index import embedding_index
from retrieval.ingest import reindex
from retrieval.models import EmbeddingIndex, EvaluationRun, LanguageModel
from retrieval.presets.catalog import preset_named
from retrieval.ranking.measures import Objective
from tests.indexes import other_index

pytestmark = pytest.mark.usefixtures("unhurried")


@pytest.fixture
def second(questions, monkeypatch):
    return other_index(monkeypatch)


def measured(questions, principal, **asked):
    return runs.run_now(questions, RunRequest("corecube", **asked), principal=principal)


def test_a_run_searches_another_index_which_need_not_be_active(questions, world, second):
    alice, other = world.principal("alice"), Components(index=second.pk)
    with pytest.raises(InvalidRequestError, match="no vector"):
        measured(questions, alice, components=other)
    assert components.other_indexes() == []
    assert reindex.build_index(second)
    assert components.other_indexes() == [EmbeddingIndex.objects.get(pk=second.pk)]
    here, there = measured(questions, alice), measured(questions, alice, components=other)
    assert (there.status, there.message) == ("done", "")
    assert (here.index, there.index, there.searched_index) == ("hash", "other", second.pk)
    assert here.fingerprint == there.fingerprint
    assert here.configuration_hash != there.configuration_hash
    assert embedding_index.active_row().model == "hash"


def test_an_index_that_was_dropped_meanwhile_fails_the_run(questions, world, second):
    reindex.build_index(second)
    run = runs.queue_run(
        questions, RunRequest("corecube", components=Components(index=second.pk)), principal=world.principal("alice")
    )
    embedding_index.forget_index(second)
    runs.run_waiting()
    run.refresh_from_db()
    assert (run.status, run.message) == ("failed", f"There is no embedding index {second.pk}.")


def test_a_language_model_that_was_switched_off_meanwhile_fails_the_run(questions, world):
    model = LanguageModel.objects.create(slug="cloud", name="Cloud", base_url="http://localhost:9/v1", model="small")
    asked = RunRequest("corecube", has_answers=True, components=Components(language_model="cloud"))
    run = runs.queue_run(questions, asked, principal=world.principal("alice"))
    LanguageModel.objects.filter(pk=model.pk).update(is_enabled=False)
    runs.run_waiting()
    run.refresh_from_db()
    assert (run.status, run.message) == ("failed", "There is no enabled language model 'cloud'.")


def test_a_run_does_not_mix_two_indexes(questions, world, second):
    reindex.build_index(second)
    run = measured(questions, world.principal("alice"))
    run.results.first().delete()
    EvaluationRun.objects.filter(pk=run.pk).update(status="queued")
    embedding_index.activate(second)
    runs.run_waiting()
    run.refresh_from_db()
    assert (run.status, "embedding index" in run.message) == ("failed", True)


class Backwards:
    """A reranker."""

    name = "backwards"


def test_a_reranker_is_left_out(questions, world, monkeypatch):
    alice = world.principal("alice")
    without = Components(is_reranked=False)
    with pytest.raises(InvalidRequestError, match="no reranker"):
        measured(questions, alice, components=without)
    monkeypatch.setattr(components.runtime, "reranker", Backwards)
    assert components.reranker_name(components.resources_for(Components()).reranker) == "backwards"
    assert components.resources_for(without).reranker is None
    run = measured(questions, alice, components=without)
    assert (run.status, run.reranker, run.is_reranked) == ("done", "", False)


def test_gates_count_only_runs_with_what_the_installation_uses(questions, world, second):
    reindex.build_index(second)
    alice, corecube = world.principal("alice"), preset_named("corecube")
    gates.set_gate(questions, preset="corecube", objective=Objective(), max_loss=0.1, actor=alice)
    measured(questions, alice, components=Components(language_model="extractive"))
    (result,) = gates.checked(corecube, None, alice)
    assert result.live is None
    run = measured(questions, alice)
    (result,) = gates.checked(corecube, None, alice)
    assert result.live == run
