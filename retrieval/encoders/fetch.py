"""Fetching a model into the models directory: verified, quantised if needed, and installed atomically."""

import shutil
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import numpy as np

from retrieval.encoders.catalog import KnownCrossEncoder, KnownEmbedder, KnownModel, Precision, Recipe
from retrieval.encoders.manifest import (
    MODEL_FILE,
    TOKENIZER_FILE,
    CrossEncoderManifest,
    Manifest,
    ModelManifest,
    file_sha256,
    verify_files,
    write_manifest,
)
from retrieval.encoders.onnx_encoder import load_encoder
from retrieval.encoders.quantise import quantise_int8, widen_to_float32
from retrieval.encoders.sources import Report, hub_answers, obtain
from retrieval.errors import EncoderError

_WORKSPACE_PREFIX: Final = ".fetch-"
_ABANDONED_AFTER_SECONDS: Final = 6 * 3600
#: Padded tokens per run of a full-precision model, whose texts do not affect each other.
_FP32_BATCH_TOKENS: Final = 2048
#: int8 changes the cosine of a short text by up to 0.007; overflowing int8 sums change it much more.
_MIN_COSINE: Final = 0.98
_PROBES: Final = (
    "How do I roll back a release?",
    "The pump must be serviced every 500 hours of operation.",
    "Invoices above 10,000 euros need the approval of two managers before they are paid.",
)


def fetch_model(
    model: KnownModel, models_dir: Path, *, report: Report, precision: Precision = Precision.INT8, force: bool = False
) -> Path:
    """Return the directory of the model, and fetch it unless it is intact (`force` always fetches it).

    Raises EncoderError if no recipe works. An interruption leaves no incomplete model.
    """
    target = models_dir / model.directory_name(precision)
    if not force and _is_intact(target):
        report(f"{target.name} is already installed.")
        return target
    models_dir.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(models_dir)
    with tempfile.TemporaryDirectory(prefix=_WORKSPACE_PREFIX, dir=models_dir) as folder:
        workspace = Path(folder)
        built = _first_working(model, precision, workspace, report)
        if target.exists():
            # It is deleted with the workspace.
            target.rename(workspace / "replaced")
        built.rename(target)
    report(f"{target.name} is ready.")
    return target


def _first_working(model: KnownModel, precision: Precision, workspace: Path, report: Report) -> Path:
    """Return the directory of the first working recipe."""
    recipes = [recipe for recipe in model.recipes if recipe.float_weights or precision is Precision.INT8]
    failures = [] if recipes else ["There are no full-precision weights."]
    for number, recipe in enumerate(recipes, start=1):
        try:
            return _build(model, recipe, precision, workspace / f"recipe-{number}", report)
        except EncoderError as error:
            report(str(error))
            failures.append(str(error))
    raise EncoderError(f"{model.directory_name(precision)} could not be fetched: {' '.join(failures)}")


def _build(model: KnownModel, recipe: Recipe, precision: Precision, workspace: Path, report: Report) -> Path:
    """Return a complete model directory below `workspace`."""
    workspace.mkdir()
    use_hub = recipe.model.hub is not None and hub_answers(recipe.model.hub)
    weights = obtain(recipe.model, workspace, use_hub=use_hub, report=report)
    tokenizer = obtain(recipe.tokenizer, workspace, use_hub=use_hub, report=report)
    if not recipe.float_weights:
        return _assemble(model, recipe, precision, weights=weights, tokenizer=tokenizer)
    full_weights = workspace / "float32.onnx"
    widen_to_float32(weights, full_weights)
    full = _assemble(model, recipe, Precision.FP32, weights=full_weights, tokenizer=tokenizer)
    if precision is Precision.FP32:
        return full
    report("Quantising the weights.")
    quantised_weights = workspace / "int8.onnx"
    quantise_int8(full / MODEL_FILE, quantised_weights)
    quantised = _assemble(model, recipe, precision, weights=quantised_weights, tokenizer=tokenizer)
    _require_agreement(quantised, full)
    return quantised


def _assemble(model: KnownModel, recipe: Recipe, precision: Precision, *, weights: Path, tokenizer: Path) -> Path:
    """Return a model directory next to the weights, which are moved into it."""
    directory = weights.parent / "models" / model.directory_name(precision)
    directory.mkdir(parents=True)
    weights.rename(directory / MODEL_FILE)
    shutil.copyfile(tokenizer, directory / TOKENIZER_FILE)
    write_manifest(_manifest(model, recipe, precision, directory), directory)
    return directory


def _manifest(model: KnownModel, recipe: Recipe, precision: Precision, directory: Path) -> ModelManifest:
    """Return the manifest of a model in this directory; raise EncoderError for an unknown kind."""
    common: dict[str, Any] = {
        "name": directory.name,
        "max_tokens": model.max_tokens,
        "batch_tokens": _FP32_BATCH_TOKENS if precision is Precision.FP32 else 0,
        "quantisation": "none" if precision is Precision.FP32 else recipe.quantisation,
        "source": recipe.model.origin,
        "source_sha256": recipe.model.sha256,
        "licence": model.licence,
        "files": {name: file_sha256(directory / name) for name in (MODEL_FILE, TOKENIZER_FILE)},
    }
    if isinstance(model, KnownCrossEncoder):
        return CrossEncoderManifest(**common)
    if isinstance(model, KnownEmbedder):
        return Manifest(
            **common,
            dim=model.dim,
            pooling=model.pooling,
            query_prefix=model.query_prefix,
            document_prefix=model.document_prefix,
            normalise=True,
        )
    raise EncoderError(f"CoreCube does not support the kind of the model {model.name}.")


def _require_agreement(quantised: Path, full: Path) -> None:
    """Raise EncoderError unless the quantised model agrees with the full model on this processor."""
    vectors = [load_encoder(directory).encode_documents(_PROBES) for directory in (quantised, full)]
    cosine = float(np.sum(vectors[0] * vectors[1], axis=1).min())
    if cosine < _MIN_COSINE:
        raise EncoderError(f"The quantised model differs from its original on this machine (cosine {cosine:.3f}).")


def _is_intact(directory: Path) -> bool:
    try:
        verify_files(directory)
    except EncoderError:
        return False
    return True


def _remove_abandoned(models_dir: Path) -> None:
    """Remove the old workspaces of killed fetches; a newer one may be in use."""
    for left in models_dir.glob(f"{_WORKSPACE_PREFIX}*"):
        if time.time() - left.stat().st_mtime > _ABANDONED_AFTER_SECONDS:
            shutil.rmtree(left, ignore_errors=True)
