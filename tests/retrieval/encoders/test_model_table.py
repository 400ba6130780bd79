"""The table of embedding models: what it says, and how a model that somebody brought gets its manifest."""

from dataclasses import replace

import pytest
from django.core.management import CommandError

from explorer.pages.models.panels import listed_models
from retrieval.encoders import model_table
from retrieval.encoders.catalog import KNOWN_MODELS, KnownEmbedder
from retrieval.encoders.manifest import LocalModel, Manifest, read_manifest
from retrieval.encoders.model_table import MODEL_TABLE
from retrieval.encoders.pooling import POOLINGS
from retrieval.management.commands import models
from tests.retrieval.encoders.test_models_command import line_of, models_dir, run  # noqa: F401 -- used by its name


def test_the_table_is_the_references():
    facts = {name: (it.dim, it.mteb) for name, it in MODEL_TABLE.items()}
    assert facts == {
        "bge-small-en-v1.5": (384, 62.17),
        "all-minilm-l6-v2": (384, 56.0),
        "gte-small": (384, 61.36),
        "e5-small-v2": (384, 59.93),
        "nomic-embed-text-v1.5": (768, 62.28),
        "bge-base-en-v1.5": (768, 63.55),
        "mxbai-embed-large-v1": (1024, 64.68),
        "arctic-embed-l-v2.0": (1024, None),
    }
    assert [it.name for it in MODEL_TABLE.values() if it.lengths] == [
        "nomic-embed-text-v1.5",
        "mxbai-embed-large-v1",
        "arctic-embed-l-v2.0",
    ]


@pytest.mark.parametrize("model", MODEL_TABLE.values(), ids=str)
def test_every_row_could_be_a_manifest(model):
    assert model.pooling in POOLINGS
    assert all(0 < length < model.dim for length in model.lengths)
    assert list(model.lengths) == sorted(model.lengths, reverse=True)


def test_the_table_and_the_catalog_agree_on_what_can_be_fetched():
    for known in KNOWN_MODELS.values():
        if isinstance(known, KnownEmbedder):
            row = MODEL_TABLE[known.name]
            assert (row.dim, row.max_tokens, row.pooling, row.query_prefix, row.document_prefix, row.licence) == (
                known.dim,
                known.max_tokens,
                known.pooling,
                known.query_prefix,
                known.document_prefix,
                known.licence,
            )
            assert row.can_be_fetched


def test_what_a_chunk_costs_is_dimensions_times_bytes():
    model = MODEL_TABLE["mxbai-embed-large-v1"]
    assert model.bytes_stored() == 2048
    assert model.bytes_indexed() == {"halfvec": 2048, "int8": 1024, "binary": 128, "prefix": 512}
    assert "prefix" not in MODEL_TABLE["bge-base-en-v1.5"].bytes_indexed()


def test_the_list_says_what_is_not_here_what_it_costs_and_how_to_get_it(models_dir):  # noqa: F811
    line = line_of(run("list"), "mxbai-embed-large-v1")
    assert " not here " in line
    assert " 1024 " in line
    assert " 2,048 B " in line
    assert line.endswith("then manage.py models adopt mxbai-embed-large-v1")
    assert line_of(run("list"), "bge-small-en-v1.5").endswith("manage.py models fetch bge-small-en-v1.5")


def test_fetching_a_model_that_is_only_listed_says_what_to_do(models_dir):  # noqa: F811
    with pytest.raises(CommandError, match=r"export Snowflake/snowflake-arctic-embed-l-v2.0 to ONNX.*models adopt"):
        run("fetch", "arctic-embed-l-v2.0")


@pytest.fixture
def listed(monkeypatch):
    """Put the tests' tiny model into the table, with so many dimensions."""

    def put(dim):
        row = replace(MODEL_TABLE["gte-small"], name="tiny", dim=dim, lengths=(2,))
        for module in (model_table, models):
            monkeypatch.setattr(module, "MODEL_TABLE", {"tiny": row})

    return put


def test_a_brought_model_is_adopted_with_the_tables_facts(make_model, models_dir, listed):  # noqa: F811
    listed(dim=3)
    directory = make_model()
    (directory / "manifest.json").unlink()
    assert run("adopt", "tiny").strip() == str(directory)
    manifest = read_manifest(directory, Manifest)
    assert (manifest.pooling, manifest.dim, manifest.licence, manifest.min_dim) == ("mean", 3, "MIT", 2)
    assert " ready " in line_of(run("list"), "tiny")


def test_a_brought_model_of_another_size_is_refused_and_leaves_no_manifest(make_model, models_dir, listed):  # noqa: F811
    listed(dim=384)
    directory = make_model()
    (directory / "manifest.json").unlink()
    with pytest.raises(CommandError, match="not 384"):
        run("adopt", "tiny")
    assert not (directory / "manifest.json").exists()


@pytest.mark.parametrize(
    ("name", "message"), [("gte-small", "lacks model.onnx and tokenizer.json"), ("x", "Unknown model")]
)
def test_nothing_is_adopted_that_is_not_there(models_dir, name, message):  # noqa: F811
    with pytest.raises(CommandError, match=message):
        run("adopt", name)


def test_the_page_says_what_is_here_and_how_to_get_the_rest():
    here = [LocalModel("bge-small-en-v1.5", None, "ready"), LocalModel("gte-small", None, "damaged")]
    rows = {model.name: (model, state, tone) for model, state, tone in listed_models(here)}
    assert rows["bge-small-en-v1.5"][1:] == ("ready", "good")
    assert rows["gte-small"][1:] == ("damaged", "bad")
    assert rows["all-minilm-l6-v2"][1] == "downloadable"
    assert rows["nomic-embed-text-v1.5"][0].lengths == (512, 256, 128, 64)
    model = rows["mxbai-embed-large-v1"][0]
    assert (model.bytes_stored(), model.bytes_indexed()["binary"]) == (2048, 128)
