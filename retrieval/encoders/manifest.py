"""A model directory: `model.onnx`, `tokenizer.json` and the `manifest.json` that says how to use them."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from retrieval.encoders.pooling import POOLINGS
from retrieval.errors import EncoderError, ModelMissingError

MODEL_FILE: Final = "model.onnx"
TOKENIZER_FILE: Final = "tokenizer.json"
MANIFEST_FILE: Final = "manifest.json"
#: The start and end marks that every text gets; a limit must leave room beside them.
_SPECIAL_TOKENS: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """How one model is used, and where its files come from."""

    name: str
    #: Components of a vector.
    dim: int
    #: Longest input that the model reads, special tokens included.
    max_tokens: int
    #: How token states become one vector; a key of `POOLINGS`.
    pooling: str
    #: Put before a query and before a document; the model was trained with them.
    query_prefix: str
    document_prefix: str
    #: Whether vectors are brought to unit length.
    normalise: bool
    #: Padded tokens in one run of the model; 0 runs every text alone (see `Precision` in the catalog).
    batch_tokens: int
    quantisation: str
    source: str
    #: sha256 of the weights as they were fetched, before any conversion here.
    source_sha256: str
    licence: str
    #: sha256 of each file of the directory, by its name.
    files: Mapping[str, str]

    def __post_init__(self) -> None:
        if self.pooling not in POOLINGS:
            raise ValueError(f"pooling must be one of {', '.join(POOLINGS)}, not {self.pooling!r}")
        if not (self.dim > 0 and self.max_tokens > _SPECIAL_TOKENS and self.batch_tokens >= 0):
            raise ValueError("dim, max_tokens and batch_tokens must be sizes")
        if missing := {MODEL_FILE, TOKENIZER_FILE} - set(self.files):
            raise ValueError(f"files does not name {', '.join(sorted(missing))}")


def read_manifest(directory: Path) -> Manifest:
    """Return the manifest of a model directory.

    Raises ModelMissingError if the directory or a file that the manifest names is missing, EncoderError if the
    manifest cannot be understood.
    """
    try:
        manifest = Manifest(**json.loads((directory / MANIFEST_FILE).read_text(encoding="utf-8")))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ModelMissingError(_missing(directory)) from error
    except (OSError, TypeError, ValueError) as error:
        raise EncoderError(
            f"The manifest of the model in {directory} is damaged ({error}). {_hint(directory)}"
        ) from error
    if any(not (directory / name).is_file() for name in manifest.files):
        raise ModelMissingError(_missing(directory))
    return manifest


def write_manifest(manifest: Manifest, directory: Path) -> None:
    """Write a model directory's manifest."""
    text = json.dumps(asdict(manifest), indent=2, ensure_ascii=False) + "\n"
    (directory / MANIFEST_FILE).write_text(text, encoding="utf-8")


def verify_files(directory: Path) -> Manifest:
    """Return the manifest after comparing every file with its sha256.

    Raises EncoderError naming the first file that differs, and what `read_manifest` raises.
    """
    manifest = read_manifest(directory)
    for name, expected in manifest.files.items():
        if file_sha256(directory / name) != expected:
            raise EncoderError(f"{directory / name} is not the file that was fetched. {_hint(directory)}")
    return manifest


def file_sha256(path: Path) -> str:
    """Return a file's sha256 in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _missing(directory: Path) -> str:
    return f"The model {directory.name!r} is not in {directory}. {_hint(directory)}"


def _hint(directory: Path) -> str:
    return f"Run `manage.py models fetch {directory.name}`."
