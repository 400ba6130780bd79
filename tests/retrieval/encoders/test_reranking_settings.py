"""Which reranker the settings name."""

import os
import subprocess
import sys

import pytest
from django.core.checks import run_checks

from retrieval.encoders.remote_reranker import SERVICE_KINDS
from retrieval.encoders.reranker import UnavailableReranker
from retrieval.engine.types import ScoreType
from retrieval.index import active
from retrieval.search import runtime


def configure(settings, **fields):
    for name, value in fields.items():
        setattr(settings, f"CORECUBE_RERANKER{f'_{name.upper()}' if name != 'name' else ''}", value)


def test_nothing_is_configured_by_default(settings):
    assert settings.CORECUBE_RERANKER == ""
    assert runtime.reranker() is None


def test_a_service_is_made_once(settings):
    configure(settings, name="http", kind="cohere", model="rerank-v3.5", api_key="hush")
    made = runtime.reranker()
    assert (made.name, made.score_type) == ("rerank-v3.5", ScoreType.RELEVANCE)
    assert runtime.reranker() is made
    made.close()


def test_a_model_of_this_machine_is_loaded_once_it_is_there(settings, make_pair_model):
    directory = make_pair_model()
    configure(settings, name="tiny-pairs")
    settings.CORECUBE_MODELS_DIR = directory.parent
    directory.rename(directory.parent / "elsewhere")
    assert isinstance(runtime.reranker(), UnavailableReranker)
    (directory.parent / "elsewhere").rename(directory)
    made = runtime.reranker()
    assert (made.name, made.score_type, made.problem) == ("tiny-pairs", ScoreType.LOGIT, "")
    assert runtime.reranker() is made


def test_late_interaction_uses_the_embedding_model(settings, monkeypatch, make_model):
    from retrieval.encoders import load_encoder

    encoder = load_encoder(make_model())
    monkeypatch.setattr(active, "encoder", lambda *_: encoder)
    configure(settings, name="late-interaction")
    made = runtime.reranker()
    assert (made.name, made.score_type, made.blend_weight) == ("late interaction of tiny", ScoreType.MAXSIM, 0.5)


def test_late_interaction_needs_an_embedding_model_with_tokens(settings):
    configure(settings, name="late-interaction")
    assert "'hash' returns no token vectors" in runtime.reranker().problem


@pytest.mark.parametrize("name", ["", "http", "late-interaction"])
def test_the_check_is_silent_where_no_model_is_needed(settings, name):
    configure(settings, name=name)
    assert not [message for message in run_checks() if message.id == "retrieval.W001"]


def test_the_check_warns_of_a_missing_model_with_the_way_out(settings, make_pair_model, tmp_path):
    settings.CORECUBE_MODELS_DIR = make_pair_model().parent
    configure(settings, name="tiny-pairs")
    assert not [message for message in run_checks() if message.id == "retrieval.W001"]
    configure(settings, name="absent")
    warnings = [message.msg for message in run_checks() if message.id == "retrieval.W001"]
    assert len(warnings) == 1
    assert "models fetch absent" in warnings[0]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"": "../secrets", "_API_KEY": "hush"}, "CORECUBE_RERANKER must be a name"),
        ({"": "http", "_KIND": "tei", "_API_KEY": "hush"}, "A reranking service of the kind tei needs its address"),
        ({"_KIND": "bing"}, "CORECUBE_RERANKER_KIND must be one of {kinds}, not 'bing'"),
    ],
)
def test_settings_that_cannot_be_right_stop_the_start_with_one_sentence(changes, sentence):
    environment = {f"CORECUBE_RERANKER{name}": value for name, value in changes.items()}
    finished = subprocess.run(
        [sys.executable, "manage.py", "check"],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 1
    assert finished.stderr.startswith(sentence.format(kinds=", ".join(SERVICE_KINDS)))
    assert finished.stderr.count("\n") == 1
    assert "hush" not in finished.stderr
