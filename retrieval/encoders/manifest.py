"""Model directories: networks, `tokenizer.json`, and `manifest.json`, which describes how to use them."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar, Final, TypeVar

from retrieval.encoders.pooling import POOLINGS
from retrieval.errors import EncoderError, ModelMissingError

MODEL_FILE: Final = "model.onnx"
TOKENIZER_FILE: Final = "tokenizer.json"
MANIFEST_FILE: Final = "manifest.json"
ENCODER_FILE: Final = "encoder_model.onnx"  #: The two networks of a model that generates text.
DECODER_FILE: Final = "decoder_model.onnx"
MAX_TERMS: Final = 1000  #: Maximum number of words of a sparse vector in pgvector's HNSW index.
#: Field names of earlier releases.
_RENAMED: Final[Mapping[str, str]] = {
    "smallest_dim": "min_dim",
    "most_new_tokens": "max_new_tokens",
    "most_terms": "max_terms",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelManifest:
    """The common fields of the manifests of all kinds of models."""

    kind: ClassVar[str]  #: The kind in the file and on pages.
    special_tokens: ClassVar[int]  #: Special tokens of every input; max_tokens must be larger.
    required_files: ClassVar[frozenset[str]] = frozenset({MODEL_FILE, TOKENIZER_FILE})

    name: str
    max_tokens: int  #: Maximum input length, including special tokens.
    #: Padded tokens per run of the model; with 0 every input runs separately (see `Precision` in the catalog).
    batch_tokens: int
    quantisation: str
    source: str
    source_sha256: str  #: sha256 of the fetched weights, before any conversion here.
    licence: str
    files: Mapping[str, str]  #: sha256 of each file of the directory, by name.

    def __post_init__(self) -> None:
        if not (self.max_tokens > self.special_tokens and self.batch_tokens >= 0):
            raise ValueError("max_tokens or batch_tokens is too small")
        if missing := self.required_files - set(self.files):
            raise ValueError(f"files lacks {', '.join(sorted(missing))}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest(ModelManifest):
    """The manifest of an embedding model."""

    kind: ClassVar[str] = "embedding"
    special_tokens: ClassVar[int] = 2

    dim: int
    pooling: str  #: A key of `POOLINGS`.
    query_prefix: str  #: Prefixes of queries and documents that the model was trained with.
    document_prefix: str
    normalise: bool
    #: Minimum number of components after truncation, for a model trained for it (Kusupati et al., Matryoshka
    #: Representation Learning, 2022); 0 for a model without truncation.
    min_dim: int = 0

    def __post_init__(self) -> None:
        ModelManifest.__post_init__(self)
        if self.pooling not in POOLINGS:
            raise ValueError(f"pooling must be one of {', '.join(POOLINGS)}, not {self.pooling!r}")
        if self.dim <= 0:
            raise ValueError("dim must be positive")
        if not 0 <= self.min_dim <= self.dim:
            raise ValueError("min_dim must be between 0 and dim")


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossEncoderManifest(ModelManifest):
    """The manifest of a reranking model, which reads a query and a text together."""

    kind: ClassVar[str] = "cross-encoder"
    # The three special tokens of a pair, and room for the query and the text.
    special_tokens: ClassVar[int] = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Seq2SeqManifest(ModelManifest):
    """The manifest of a model that reads a text and generates short ones."""

    kind: ClassVar[str] = "seq2seq"
    special_tokens: ClassVar[int] = 1
    required_files: ClassVar[frozenset[str]] = frozenset({ENCODER_FILE, DECODER_FILE, TOKENIZER_FILE})

    prefix: str  #: Prefix of a text that the model was trained with.
    start_token: int  #: The first and the last token of generated texts.
    end_token: int
    max_new_tokens: int = 32
    sampled_from: int = 10  #: Number of the likeliest tokens for sampling (top k).

    def __post_init__(self) -> None:
        ModelManifest.__post_init__(self)
        if min(self.start_token, self.end_token) < 0 or min(self.max_new_tokens, self.sampled_from) < 1:
            raise ValueError("start_token, end_token, max_new_tokens or sampled_from is too small")


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseManifest(ModelManifest):
    """The manifest of a model that weights the words of its vocabulary (SPLADE)."""

    kind: ClassVar[str] = "sparse"
    special_tokens: ClassVar[int] = 2

    vocabulary: int  #: Size of the vocabulary: the last axis of the model's output.
    #: Number of words of the highest weights per chunk and per query; an HNSW index allows 1,000.
    max_terms: int = 256
    query_terms: int = 64

    def __post_init__(self) -> None:
        ModelManifest.__post_init__(self)
        if not (1 <= self.query_terms <= MAX_TERMS and 1 <= self.max_terms <= MAX_TERMS and self.vocabulary > 0):
            raise ValueError(f"vocabulary must be positive, max_terms and query_terms between 1 and {MAX_TERMS}")


@dataclass(frozen=True, slots=True, kw_only=True)
class LateInteractionManifest(ModelManifest):
    """The manifest of a model with a vector for each token, for late interaction (ColBERT)."""

    kind: ClassVar[str] = "late-interaction"
    special_tokens: ClassVar[int] = 3

    dim: int  #: Components of a token's vector.
    query_mark: int = -1  #: Tokens after the first special token of a query and of a document; -1 for none.
    document_mark: int = -1
    query_tokens: int = 32  #: Shorter queries are padded to this length with the mask token; 0 for no padding.
    mask_token: int = -1

    def __post_init__(self) -> None:
        ModelManifest.__post_init__(self)
        if self.dim <= 0 or not 0 <= self.query_tokens <= self.max_tokens:
            raise ValueError("dim must be positive, query_tokens at most max_tokens")
        if self.query_tokens and self.mask_token < 0:
            raise ValueError("query_tokens needs a mask_token")


_ManifestT = TypeVar("_ManifestT", bound=ModelManifest)
_KINDS: Final[Mapping[str, type[ModelManifest]]] = {
    manifest.kind: manifest
    for manifest in (Manifest, CrossEncoderManifest, Seq2SeqManifest, SparseManifest, LateInteractionManifest)
}


def read_any_manifest(directory: Path) -> ModelManifest:
    """Return a directory's manifest of any kind; raise ModelMissingError for a missing file, EncoderError."""
    try:
        manifest = _parsed(json.loads((directory / MANIFEST_FILE).read_text(encoding="utf-8")))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ModelMissingError(_missing(directory)) from error
    except (OSError, TypeError, ValueError) as error:
        raise EncoderError(
            f"The manifest of the model in {directory} is damaged ({error}). {_hint(directory)}"
        ) from error
    if any(not (directory / name).is_file() for name in manifest.files):
        raise ModelMissingError(_missing(directory))
    return manifest


def read_manifest(directory: Path, expected: type[_ManifestT]) -> _ManifestT:
    """Return the manifest of a model of the expected kind; raise as `read_any_manifest`, EncoderError for another."""
    manifest = read_any_manifest(directory)
    if not isinstance(manifest, expected):
        raise EncoderError(f"The model {manifest.name!r} has the kind {manifest.kind!r}, not {expected.kind!r}.")
    return manifest


def write_manifest(manifest: ModelManifest, directory: Path) -> None:
    """Write a model directory's manifest."""
    text = json.dumps({"kind": manifest.kind, **asdict(manifest)}, indent=2, ensure_ascii=False) + "\n"
    (directory / MANIFEST_FILE).write_text(text, encoding="utf-8")


def verify_files(directory: Path) -> ModelManifest:
    """Return the manifest; raise EncoderError for a file of another sha256, and as `read_any_manifest`."""
    manifest = read_any_manifest(directory)
    for name, expected in manifest.files.items():
        if file_sha256(directory / name) != expected:
            raise EncoderError(f"{directory / name} has changed since it was fetched. {_hint(directory)}")
    return manifest


def file_sha256(path: Path) -> str:
    """Return a file's sha256 in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _parsed(content: object) -> ModelManifest:
    """Return the manifest of a file's content; without a kind it is an embedding model's."""
    if not isinstance(content, dict):
        raise TypeError("it is not an object")
    fields = {_RENAMED.get(name, name): value for name, value in content.items() if name != "kind"}
    kind = content.get("kind", Manifest.kind)
    if kind not in _KINDS:
        raise ValueError(f"kind must be one of {', '.join(_KINDS)}, not {kind!r}")
    return _KINDS[kind](**fields)


def _missing(directory: Path) -> str:
    return f"The model {directory.name!r} is not in {directory}. {_hint(directory)}"


def _hint(directory: Path) -> str:
    return f"Run `manage.py models fetch {directory.name}`."


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A model folder."""

    name: str
    manifest: ModelManifest | None  #: None for an incomplete or damaged model.
    state: str  #: "ready", "incomplete" or "damaged".
    bytes: int = 0

    @property
    def makes_embeddings(self) -> bool:
        """Whether an embedding index can be built with it."""
        return isinstance(self.manifest, Manifest)


def model_names(models_dir: Path) -> list[str]:
    """Return the names of the model folders; workspaces start with a dot."""
    if not models_dir.is_dir():
        return []
    return sorted(entry.name for entry in models_dir.iterdir() if entry.is_dir() and not entry.name.startswith("."))


def local_models(models_dir: Path) -> Iterator[LocalModel]:
    """Yield the models of a folder by name; only their manifests are read."""
    for name in model_names(models_dir):
        yield _model(models_dir / name)


def files_size(manifest: ModelManifest, directory: Path) -> int:
    """Return the bytes of a model's files."""
    return sum((directory / name).stat().st_size for name in manifest.files)


def _model(directory: Path) -> LocalModel:
    try:
        manifest = read_any_manifest(directory)
    except ModelMissingError:
        return LocalModel(directory.name, None, "incomplete")
    except EncoderError:
        return LocalModel(directory.name, None, "damaged")
    return LocalModel(directory.name, manifest, "ready", files_size(manifest, directory))
