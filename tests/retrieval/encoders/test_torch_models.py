"""Folders of sentence-transformers: when the library runs a model, and what is said without it."""

import sys

import pytest

from retrieval.encoders.embedders import Choices
from retrieval.encoders.reranker import UnavailableReranker
from retrieval.encoders.torch_models import folder_sha256, is_torch_folder, load_torch_encoder
from retrieval.errors import EncoderError, ModelMissingError
from retrieval.search import runtime


@pytest.fixture
def folder(tmp_path):
    """Return a folder as the library writes it, without weights."""
    directory = tmp_path / "models" / "minilm"
    directory.mkdir(parents=True)
    (directory / "modules.json").write_text("[]")
    return directory


class TestChoice:
    def test_the_folder_tells_that_the_library_runs_it(self, folder):
        choice = Choices(models_dir=folder.parent, model="minilm").configured()
        assert (choice.is_torch, choice.source) == (True, "sentence-transformers:minilm")
        again = Choices(models_dir=folder.parent, model="tiny").of_index(source=choice.source, model="minilm", dim=384)
        assert again == choice

    def test_where_both_runtimes_can_the_setting_decides(self, make_model):
        directory = make_model()
        (directory / "config.json").write_text("{}")
        assert not is_torch_folder(directory)
        choices = {
            is_torch: Choices(models_dir=directory.parent, model="tiny", is_torch=is_torch) for is_torch in (0, 1)
        }
        assert choices[0].configured().source == "local:tiny"
        assert choices[1].configured().source == "sentence-transformers:tiny"

    def test_without_the_library_the_extra_is_named(self, folder, monkeypatch):
        monkeypatch.setitem(sys.modules, "sentence_transformers", None)
        with pytest.raises(EncoderError, match="extra 'torch'"):
            Choices(models_dir=folder.parent, model="minilm").configured().load()

    def test_a_missing_folder_is_a_missing_model(self, tmp_path, settings):
        with pytest.raises(ModelMissingError, match="no model of sentence-transformers"):
            load_torch_encoder(tmp_path / "absent")
        settings.CORECUBE_RERANKER, settings.CORECUBE_RERANKER_MODEL = "sentence-transformers", "absent"
        assert isinstance(runtime.reranker(), UnavailableReranker)
        assert "'absent' is not on this machine" in runtime.reranker().problem

    def test_other_files_are_other_weights(self, folder):
        before = folder_sha256(folder)
        (folder / "modules.json").write_text("[1]")
        assert folder_sha256(folder) != before
