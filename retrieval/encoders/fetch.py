"""Fetching a model into the models directory: verified, quantised where that is ours to do, and put in place whole."""

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
#: Padded tokens in one run of a full-precision model, where texts do not change each other.
_FP32_BATCH_TOKENS: Final = 2048
#: int8 moves a short text by up to 0.007; a processor whose int8 sums overflow moves it much further.
_MIN_COSINE: Final = 0.98
_PROBES: Final = (
    "How do I roll back a release?",
    "The pump must be serviced every 500 hours of operation.",
    "Invoices above 10,000 euros need the approval of two managers before they are paid.",
)


def fetch_model(
    model: KnownModel,
    models_dir: Path,
    *,
    report: Report,
    precision: Precision = Precision.INT8,
    force: bool = False,
) -> Path:
    """Return the directory of the model, fetched unless it is there and intact (`force` fetches it anyway).

    Raises EncoderError when no recipe leads to it. Interrupted at any point, it leaves no half-made model.
    """
    target = models_dir / model.directory_name(precision)
    if not force and _is_intact(target):
        report(f"{target.name} is there already.")
        return target
    models_dir.mkdir(parents=True, exist_ok=True)
    _sweep(models_dir)
    with tempfile.TemporaryDirectory(prefix=_WORKSPACE_PREFIX, dir=models_dir) as folder:
        workspace = Path(folder)
        _put_in_place(_first_working(model, precision, workspace, report), target, workspace)
    report(f"{target.name} is ready.")
    return target


def _first_working(model: KnownModel, precision: Precision, workspace: Path, report: Report) -> Path:
    """Return the directory that the first working recipe made."""
    recipes = [recipe for recipe in model.recipes if recipe.float_weights or precision is Precision.INT8]
    failures = [] if recipes else ["No full-precision weights of it are known."]
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
    """Return a model directory beside the weights, which are moved into it."""
    directory = weights.parent / "models" / model.directory_name(precision)
    directory.mkdir(parents=True)
    weights.rename(directory / MODEL_FILE)
    shutil.copyfile(tokenizer, directory / TOKENIZER_FILE)
    write_manifest(_manifest(model, recipe, precision, directory), directory)
    return directory


def _manifest(model: KnownModel, recipe: Recipe, precision: Precision, directory: Path) -> ModelManifest:
    """Return the manifest of a model whose files lie in the directory; raise EncoderError for an unknown kind."""
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
    raise EncoderError(f"{model.name} is of no kind that CoreCube can use.")


def _require_agreement(quantised: Path, full: Path) -> None:
    """Raise EncoderError unless the quantised model's vectors point, on this processor, where the full model's do."""
    vectors = [load_encoder(directory).encode_documents(_PROBES) for directory in (quantised, full)]
    cosine = float(np.sum(vectors[0] * vectors[1], axis=1).min())
    if cosine < _MIN_COSINE:
        raise EncoderError(f"The quantised model does not agree with its original here (cosine {cosine:.3f}).")


def _put_in_place(built: Path, target: Path, workspace: Path) -> None:
    """Move the new directory to its place; an old one leaves with the workspace."""
    if target.exists():
        target.rename(workspace / "replaced")
    built.rename(target)


def _is_intact(directory: Path) -> bool:
    try:
        verify_files(directory)
    except EncoderError:
        return False
    return True


def _sweep(models_dir: Path) -> None:
    """Remove the workspaces that killed fetches left behind; a younger one may be at work."""
    for left in models_dir.glob(f"{_WORKSPACE_PREFIX}*"):
        if time.time() - left.stat().st_mtime > _ABANDONED_AFTER_SECONDS:
            shutil.rmtree(left, ignore_errors=True)
