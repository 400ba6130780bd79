from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from retrieval.encoders import catalog
from retrieval.management.commands import models


@pytest.fixture(autouse=True)
def models_dir(settings, tmp_path):
    settings.CORECUBE_MODELS_DIR = tmp_path / "models"
    settings.CORECUBE_MODEL = "tiny"
    return settings.CORECUBE_MODELS_DIR


def run(*arguments):
    out = StringIO()
    call_command("models", *arguments, stdout=out, stderr=StringIO())
    return out.getvalue()


def line_of(listing, name):
    return next(line for line in listing.splitlines() if line.startswith(name))


def test_list_shows_known_models_that_are_not_fetched():
    listing = run("list")
    for name in catalog.KNOWN_MODELS:
        assert "not fetched" in line_of(listing, name)


def test_list_shows_a_model_of_the_users_own_as_the_default(make_model, models_dir):
    make_model()
    line = line_of(run("list"), "tiny")
    assert "(default)" in line
    assert " ready " in line
    assert line.endswith(str(models_dir / "tiny"))


def test_list_shows_the_reranker_without_a_dimension(make_pair_model, models_dir, settings):
    make_pair_model()
    settings.CORECUBE_RERANKER = "tiny-pairs"
    words = line_of(run("list"), "tiny-pairs").split()
    assert words == ["tiny-pairs", "(reranker)", "ready", "0", "MB", str(models_dir / "tiny-pairs")]


def test_verify_tries_a_cross_encoder_with_pairs(make_pair_model):
    make_pair_model()
    assert run("verify") == "tiny-pairs: intact\n"
    make_pair_model(network={"columns": (0, 1, 2)})
    with pytest.raises(CommandError, match="it is not a cross-encoder"):
        run("verify")


@pytest.mark.parametrize(("damage", "state"), [("manifest.json", "damaged"), ("model.onnx", "incomplete")])
def test_list_shows_what_is_wrong(make_model, damage, state):
    path = make_model() / damage
    path.unlink()
    if state == "damaged":
        path.write_text("{")
    assert f" {state} " in line_of(run("list"), "tiny") + " "


def test_verify_accepts_every_intact_model(make_model):
    make_model()
    assert run("verify") == run("verify", "tiny") == "tiny: intact\n"


def test_verify_refuses_a_changed_file(make_model):
    with (make_model() / "tokenizer.json").open("a") as file:
        file.write(" ")
    with pytest.raises(CommandError, match=r"tokenizer\.json has changed since it was fetched"):
        run("verify")


def test_verify_refuses_a_model_whose_vectors_are_no_numbers(make_model):
    make_model(rows={"[CLS]": (float("nan"), 0, 0)})
    with pytest.raises(CommandError, match="not of unit length"):
        run("verify")


def test_verify_needs_a_model():
    with pytest.raises(CommandError, match="models fetch"):
        run("verify")
    with pytest.raises(CommandError, match="models fetch absent"):
        run("verify", "absent")


def test_fetch_refuses_a_name_that_nobody_knows():
    with pytest.raises(CommandError, match="no model named 'bert'"):
        run("fetch", "bert")


def test_fetch_takes_the_default_model_when_none_is_named():
    with pytest.raises(CommandError, match="no model named 'tiny'"):
        run("fetch")


def test_fetch_prints_where_the_model_is(monkeypatch, models_dir):
    asked = []

    def fetch_nothing(model, directory, *, precision, force, report):
        asked.append((model.name, precision, force))
        report("working")
        return directory / model.directory_name(precision)

    monkeypatch.setattr(models, "fetch_model", fetch_nothing)
    out = run("fetch", "bge-small-en-v1.5", "--precision", "fp32", "--force")
    assert out == f"{models_dir / 'bge-small-en-v1.5-fp32'}\n"
    assert run("fetch", "bge-small-en-v1.5-fp32") == out
    assert asked == [("bge-small-en-v1.5", "fp32", True), ("bge-small-en-v1.5", "fp32", False)]


def test_a_models_directory_that_cannot_be_used_is_told(settings, tmp_path):
    settings.CORECUBE_MODELS_DIR = tmp_path / "file"
    settings.CORECUBE_MODELS_DIR.write_text("")
    with pytest.raises(CommandError, match="cannot be used"):
        run("fetch", "all-minilm-l6-v2")
