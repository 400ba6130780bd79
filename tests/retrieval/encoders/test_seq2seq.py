"""A model that writes short texts of a text, on networks whose logits are known."""

from math import exp

import pytest

from retrieval.encoders.manifest import Manifest, Seq2SeqManifest, read_any_manifest, read_manifest
from retrieval.encoders.seq2seq import load_seq2seq
from retrieval.errors import EncoderError, ModelMissingError
from tests.retrieval.encoders.seq2seq_model import write_model

TEXT = "pump pump valve"


@pytest.fixture
def model(tmp_path):
    return load_seq2seq(write_model(tmp_path / "tiny-writer"))


def test_the_first_text_takes_the_likeliest_token_each_time(model):
    assert model.write(TEXT, count=1) == ["what pump"]
    assert model.write("lamp", count=1) == ["what lamp"]


def test_the_others_are_drawn_as_likely_as_the_model_says(tmp_path):
    model = load_seq2seq(write_model(tmp_path / "tiny-writer", sampled_from=2))
    first, *others = model.write(TEXT, count=2001)
    assert first == "what pump"
    # Logits 2 for pump and 1 for valve; lamp is not among the two likeliest.
    assert set(others) == {"what pump", "what valve"}
    assert others.count("what pump") / 2000 == pytest.approx(exp(2) / (exp(2) + exp(1)), abs=0.04)


def test_the_same_text_always_gives_the_same(model):
    assert model.write(TEXT, count=5) == model.write(TEXT, count=5)
    assert len(set(model.write("pump valve lamp", count=50))) == 3


def test_a_text_beyond_the_limit_is_cut_at_the_end(tmp_path):
    # Four tokens are read: three words and the end.
    model = load_seq2seq(write_model(tmp_path / "tiny-writer", max_tokens=4))
    assert model.write("valve valve pump pump pump pump", count=1) == ["what valve"]


def test_what_does_not_end_is_cut_short(tmp_path):
    model = load_seq2seq(write_model(tmp_path / "tiny-writer", ends=False, max_new_tokens=4))
    assert model.write("pump", count=1) == ["what pump pump pump"]


def test_the_prefix_is_read_before_the_text(tmp_path):
    model = load_seq2seq(write_model(tmp_path / "tiny-writer", prefix="lamp lamp "))
    assert model.write("pump", count=1) == ["what lamp"]


def test_a_marker_in_the_text_does_not_end_it(model):
    assert model.write("lamp </s> pump pump", count=1) == ["what pump"]


def test_a_directory_without_its_files_is_missing(tmp_path):
    directory = write_model(tmp_path / "tiny-writer")
    (directory / "decoder_model.onnx").unlink()
    with pytest.raises(ModelMissingError):
        load_seq2seq(directory)


def test_a_decoder_that_asks_for_more_is_refused(tmp_path):
    directory = write_model(tmp_path / "tiny-writer", more_inputs=("past_length",))
    with pytest.raises(EncoderError, match="past_length"):
        load_seq2seq(directory)


def test_a_manifest_that_cannot_be_is_refused(tmp_path):
    directory = write_model(tmp_path / "tiny-writer")
    text = (directory / "manifest.json").read_text()
    for wrong in ('"max_new_tokens": 0', '"sampled_from": 0', '"start_token": -1'):
        name = wrong.partition(":")[0]
        lines = [f"  {wrong}," if name in line else line for line in text.splitlines()]
        (directory / "manifest.json").write_text("\n".join(lines).replace(",\n}", "\n}"))
        with pytest.raises(EncoderError, match="damaged"):
            read_any_manifest(directory)


def test_kinds_are_told_apart(tmp_path, make_model):
    writer = write_model(tmp_path / "tiny-writer")
    assert read_any_manifest(writer).kind == "seq2seq"
    with pytest.raises(EncoderError, match="not 'embedding'"):
        read_manifest(writer, Manifest)
    with pytest.raises(EncoderError, match="not 'seq2seq'"):
        read_manifest(make_model(), Seq2SeqManifest)


def test_damaged_networks_are_refused(tmp_path):
    directory = write_model(tmp_path / "tiny-writer")
    (directory / "encoder_model.onnx").write_bytes(b"nothing")
    with pytest.raises(EncoderError):
        load_seq2seq(directory)
