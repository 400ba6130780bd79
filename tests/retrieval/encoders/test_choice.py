"""Which embedding models the settings offer."""

import pytest

from corecube.errors import ConfigError
from retrieval.encoders.embedders import Choices
from retrieval.encoders.remote_encoder import RemoteEncoder
from retrieval.errors import ModelMissingError

OPENAI = {"kind": "openai", "model": "m-large", "dim": 8}
VOYAGE = {"kind": "voyage", "model": "v-large", "dim": 16, "query_model": "v-small", "api_key": "sesame"}


@pytest.fixture
def choices(make_model):
    return Choices(models_dir=make_model(min_dim=2).parent, model="tiny", calls=5)


def with_services(choices):
    return Choices(models_dir=choices.models_dir, model="tiny", service=OPENAI, next_service=VOYAGE, calls=5)


def test_a_local_model_is_loaded_once(choices):
    choice = choices.configured()
    assert choice.source == "local:tiny"
    assert choice.load() is choices.configured().load()
    assert choice.load().dim == 3


def test_a_service_counts_with_the_local_tokenizer(choices):
    encoder = with_services(choices).configured().load()
    assert isinstance(encoder, RemoteEncoder)
    assert (encoder.name, encoder.weights, encoder.dim, encoder.batching.calls) == ("m-large", "openai", 8, 5)
    assert encoder.count_tokens(["alpha betas"]) == [3]


def test_the_next_service_is_another_one(choices):
    choice = with_services(choices).next()
    assert (choice.source, choice.service.model) == ("voyage", "v-large")
    assert choice.load().weights == "voyage v-small"
    assert "sesame" not in repr(choice)
    with pytest.raises(ConfigError, match="CORECUBE_NEXT_EMBEDDER"):
        choices.next()


@pytest.mark.parametrize("source", ["local:tiny", ""])
def test_an_index_finds_its_local_model_whole_or_cut(choices, source):
    assert choices.of_index(source=source, model="tiny", dim=3).load().dim == 3
    assert choices.of_index(source=source, model="tiny", dim=2).load().dim == 2
    with pytest.raises(ConfigError, match="2 to 3"):
        choices.of_index(source=source, model="tiny", dim=1).load()


def test_an_index_finds_its_service_among_both(choices):
    both = with_services(choices)
    assert both.of_index(source="openai", model="m-large", dim=8).service.kind == "openai"
    assert both.of_index(source="voyage", model="v-large", dim=16).service.kind == "voyage"
    for changed in ({"dim": 9}, {"model": "m"}, {"source": "voyage"}):
        with pytest.raises(ConfigError, match="describes it"):
            both.of_index(**({"source": "openai", "model": "m-large", "dim": 8} | changed))


@pytest.mark.parametrize("name", ["", "..", "../tiny", "a/b", ".hidden"])
def test_what_is_no_folder_is_refused(choices, name):
    with pytest.raises(ConfigError):
        choices.local(name)


def test_a_model_that_is_not_there_is_missing(choices):
    with pytest.raises(ModelMissingError):
        choices.of_index(source="local:gone", model="gone", dim=3)
