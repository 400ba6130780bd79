import json

import pytest

from retrieval.encoders.manifest import Manifest, read_manifest, verify_files, write_manifest
from retrieval.errors import EncoderError, ModelMissingError


def edit(directory, **changes):
    path = directory / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_what_is_written_is_read_back(make_model):
    directory = make_model(query_prefix="Suche: “", pooling="mean")
    manifest = read_manifest(directory, Manifest)
    assert (manifest.query_prefix, manifest.pooling, manifest.dim) == ("Suche: “", "mean", 3)
    write_manifest(manifest, directory)
    assert read_manifest(directory, Manifest) == manifest


def test_a_manifest_without_a_kind_is_an_embedding_models(make_model):
    path = make_model() / "manifest.json"
    content = json.loads(path.read_text())
    assert content.pop("kind") == "embedding"
    path.write_text(json.dumps(content))
    assert read_manifest(path.parent, Manifest).kind == "embedding"


def test_a_manifest_of_an_earlier_release_is_read(make_model):
    path = make_model(min_dim=2) / "manifest.json"
    content = json.loads(path.read_text())
    content["smallest_dim"] = content.pop("min_dim")
    path.write_text(json.dumps(content))
    assert read_manifest(path.parent, Manifest).min_dim == 2


def test_a_missing_directory_names_the_command_that_helps(tmp_path):
    with pytest.raises(ModelMissingError, match=r"manage\.py models fetch bge"):
        read_manifest(tmp_path / "bge", Manifest)


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json", "manifest.json"])
def test_a_missing_file_is_a_missing_model(make_model, name):
    directory = make_model()
    (directory / name).unlink()
    with pytest.raises(ModelMissingError, match="models fetch tiny"):
        read_manifest(directory, Manifest)


@pytest.mark.parametrize(
    "changes",
    [
        {"pooling": "max"},
        {"dim": 0},
        {"dim": "many"},
        {"max_tokens": 2},
        {"batch_tokens": -1},
        {"files": {"model.onnx": "0"}},
        {"colour": "red"},
        {"kind": "oracle"},
        {"kind": ["embedding"]},
    ],
)
def test_a_manifest_that_makes_no_sense_is_damaged(make_model, changes):
    directory = make_model()
    edit(directory, **changes)
    with pytest.raises(EncoderError, match="is damaged"):
        read_manifest(directory, Manifest)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe"])
def test_a_manifest_that_is_no_json_object_is_damaged(make_model, content):
    directory = make_model()
    (directory / "manifest.json").write_bytes(content)
    with pytest.raises(EncoderError, match="is damaged"):
        read_manifest(directory, Manifest)


def test_intact_files_verify(make_model):
    assert verify_files(make_model()).name == "tiny"


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_changed_file_does_not_verify(make_model, name):
    directory = make_model()
    with (directory / name).open("ab") as file:
        file.write(b" ")
    with pytest.raises(EncoderError, match=f"{name} has changed since it was fetched"):
        verify_files(directory)
