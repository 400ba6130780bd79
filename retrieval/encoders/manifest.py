"""A model directory: its networks, `tokenizer.json` and the `manifest.json` that says how to use them."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar, Final

from retrieval.encoders.pooling import POOLINGS
from retrieval.errors import EncoderError, ModelMissingError

MODEL_FILE: Final = "model.onnx"
TOKENIZER_FILE: Final = "tokenizer.json"
MANIFEST_FILE: Final = "manifest.json"
#: The two halves of a model that writes texts.
ENCODER_FILE: Final = "encoder_model.onnx"
DECODER_FILE: Final = "decoder_model.onnx"
#: Words of one sparse vector that pgvector's HNSW index takes.
MAX_TERMS: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelManifest:
    """What the manifests of all kinds of models say."""

    #: What the model is, as the file and people call it.
    kind: ClassVar[str]
    #: The marks that every input gets; a limit must leave room beside them.
    special_tokens: ClassVar[int]
    #: The files that it cannot do without.
    needed_files: ClassVar[frozenset[str]] = frozenset({MODEL_FILE, TOKENIZER_FILE})

    name: str
    #: Longest input that the model reads, special tokens included.
    max_tokens: int
    #: Padded tokens in one run of the model; 0 runs every input alone (see `Precision` in the catalog).
    batch_tokens: int
    quantisation: str
    source: str
    #: sha256 of the weights as they were fetched, before any conversion here.
    source_sha256: str
    licence: str
    #: sha256 of each file of the directory, by its name.
    files: Mapping[str, str]

    def __post_init__(self) -> None:
        if not (self.max_tokens > self.special_tokens and self.batch_tokens >= 0):
            raise ValueError("max_tokens and batch_tokens must be sizes")
        if missing := self.needed_files - set(self.files):
            raise ValueError(f"files does not name {', '.join(sorted(missing))}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest(ModelManifest):
    """How one embedding model is used, and where its files come from."""

    kind: ClassVar[str] = "embedding"
    special_tokens: ClassVar[int] = 2

    #: Components of a vector.
    dim: int
    #: How token states become one vector; a key of `POOLINGS`.
    pooling: str
    #: Put before a query and before a document; the model was trained with them.
    query_prefix: str
    document_prefix: str
    #: Whether vectors are brought to unit length.
    normalise: bool
    #: Fewest components that a vector may be cut to, for a model trained so that its first ones carry most (Kusupati
    #: et al., Matryoshka Representation Learning, 2022); 0 for a model whose vectors must stay whole.
    min_dim: int = 0

    def __post_init__(self) -> None:
        ModelManifest.__post_init__(self)
        if self.pooling not in POOLINGS:
            raise ValueError(f"pooling must be one of {', '.join(POOLINGS)}, not {self.pooling!r}")
        if self.dim <= 0:
            raise ValueError("dim must be a size")
        if not 0 <= self.min_dim <= self.dim:
            raise ValueError("min_dim must lie between 0 and dim")


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossEncoderManifest(ModelManifest):
    """How one reranking model, which reads a query and a text together, is used."""

    kind: ClassVar[str] = "cross-encoder"
    # Two tokens of the query and of the text, at the least, beside the three marks of a pair.
    special_tokens: ClassVar[int] = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Seq2SeqManifest(ModelManifest):
    """How one model that reads a text and writes short ones is used."""

    kind: ClassVar[str] = "seq2seq"
    special_tokens: ClassVar[int] = 1
    needed_files: ClassVar[frozenset[str]] = frozenset({ENCODER_FILE, DECODER_FILE, TOKENIZER_FILE})

    #: Put before a text; the model was trained with it.
    prefix: str
    #: The token that starts what is written, and the one that ends it.
    start_token: int
    end_token: int
    max_new_tokens: int = 32
    #: How many of the likeliest tokens one is drawn from.
    sampled_from: int = 10

    def __post_init__(self) -> None:
        ModelManifest.__post_init__(self)
        if min(self.start_token, self.end_token) < 0 or min(self.max_new_tokens, self.sampled_from) < 1:
            raise ValueError("tokens must be numbers of tokens, max_new_tokens and sampled_from sizes")


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseManifest(ModelManifest):
    """How one model that weighs the words of its vocabulary (SPLADE) is used."""

    kind: ClassVar[str] = "sparse"
    special_tokens: ClassVar[int] = 2

    #: Words of the vocabulary: the numbers that the model gives for each token, or for the text.
    vocabulary: int
    #: Words that a chunk and a query keep, the heaviest; an HNSW index takes no more than 1,000.
    max_terms: int = 256
    query_terms: int = 64

    def __post_init__(self) -> None:
        ModelManifest.__post_init__(self)
        if not (1 <= self.query_terms <= MAX_TERMS and 1 <= self.max_terms <= MAX_TERMS and self.vocabulary > 0):
            raise ValueError(f"vocabulary must be a size, max_terms and query_terms lie between 1 and {MAX_TERMS}")


@dataclass(frozen=True, slots=True, kw_only=True)
class LateInteractionManifest(ModelManifest):
    """How one model that gives each token a vector for late interaction (ColBERT) is used."""

    kind: ClassVar[str] = "late-interaction"
    special_tokens: ClassVar[int] = 3

    #: Components of a token's vector.
    dim: int
    #: Tokens put after the first mark of a query and of a document; -1 for none.
    query_mark: int = -1
    document_mark: int = -1
    #: A shorter query is filled up to this length with the mask token, which the model is trained to read; 0 for not.
    query_tokens: int = 32
    mask_token: int = -1

    def __post_init__(self) -> None:
        ModelManifest.__post_init__(self)
        if self.dim <= 0 or not 0 <= self.query_tokens <= self.max_tokens:
            raise ValueError("dim must be a size, query_tokens at most max_tokens")
        if self.query_tokens and self.mask_token < 0:
            raise ValueError("query_tokens needs a mask_token")


_KINDS: Final[Mapping[str, type[ModelManifest]]] = MappingProxyType(
    {
        manifest.kind: manifest
        for manifest in (Manifest, CrossEncoderManifest, Seq2SeqManifest, SparseManifest, LateInteractionManifest)
    }
)
#: Fields that manifests of earlier releases name otherwise.
_RENAMED: Final[Mapping[str, str]] = MappingProxyType(
    {"smallest_dim": "min_dim", "most_new_tokens": "max_new_tokens", "most_terms": "max_terms"}
)


def read_any_manifest(directory: Path) -> ModelManifest:
    """Return the manifest of a model directory of any kind.

    Raises ModelMissingError if the directory or a file that the manifest names is missing, EncoderError if the
    manifest cannot be understood.
    """
    try:
        manifest = _understood(json.loads((directory / MANIFEST_FILE).read_text(encoding="utf-8")))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ModelMissingError(_missing(directory)) from error
    except (OSError, TypeError, ValueError) as error:
        raise EncoderError(
            f"The manifest of the model in {directory} is damaged ({error}). {_hint(directory)}"
        ) from error
    if any(not (directory / name).is_file() for name in manifest.files):
        raise ModelMissingError(_missing(directory))
    return manifest


def read_manifest(directory: Path) -> Manifest:
    """Return the manifest of an embedding model; raise as `read_any_manifest`, and EncoderError for another kind."""
    manifest = read_any_manifest(directory)
    if not isinstance(manifest, Manifest):
        raise EncoderError(f"The model {manifest.name!r} is a {manifest.kind} model; it makes no embeddings.")
    return manifest


def read_cross_encoder_manifest(directory: Path) -> CrossEncoderManifest:
    """Return the manifest of a cross-encoder; raise as `read_any_manifest`, and EncoderError for another kind."""
    manifest = read_any_manifest(directory)
    if not isinstance(manifest, CrossEncoderManifest):
        raise EncoderError(f"The model {manifest.name!r} is an {manifest.kind} model; it scores no pairs.")
    return manifest


def read_seq2seq_manifest(directory: Path) -> Seq2SeqManifest:
    """Return the manifest of a model that writes texts; raise as `read_any_manifest`, and EncoderError for another."""
    manifest = read_any_manifest(directory)
    if not isinstance(manifest, Seq2SeqManifest):
        raise EncoderError(f"The model {manifest.name!r} is of the kind {manifest.kind}; it writes no texts.")
    return manifest


def read_sparse_manifest(directory: Path) -> SparseManifest:
    """Return the manifest of a model that weighs words; raise as `read_any_manifest`, and EncoderError for another."""
    manifest = read_any_manifest(directory)
    if not isinstance(manifest, SparseManifest):
        raise EncoderError(f"The model {manifest.name!r} is of the kind {manifest.kind}; it makes no sparse vectors.")
    return manifest


def write_manifest(manifest: ModelManifest, directory: Path) -> None:
    """Write a model directory's manifest."""
    text = json.dumps({"kind": manifest.kind, **asdict(manifest)}, indent=2, ensure_ascii=False) + "\n"
    (directory / MANIFEST_FILE).write_text(text, encoding="utf-8")


def verify_files(directory: Path) -> ModelManifest:
    """Return the manifest after comparing every file with its sha256.

    Raises EncoderError naming the first file that differs, and what `read_any_manifest` raises.
    """
    manifest = read_any_manifest(directory)
    for name, expected in manifest.files.items():
        if file_sha256(directory / name) != expected:
            raise EncoderError(f"{directory / name} is not the file that was fetched. {_hint(directory)}")
    return manifest


def file_sha256(path: Path) -> str:
    """Return a file's sha256 in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _understood(content: object) -> ModelManifest:
    """Return the manifest that a file holds; one without a kind is an embedding model's."""
    if not isinstance(content, dict):
        raise TypeError("it holds no object")
    fields = {_RENAMED.get(name, name): value for name, value in content.items() if name != "kind"}
    kind = content.get("kind", Manifest.kind)
    if kind not in _KINDS:
        raise ValueError(f"kind must be one of {', '.join(_KINDS)}, not {kind!r}")
    return _KINDS[kind](**fields)


def _missing(directory: Path) -> str:
    return f"The model {directory.name!r} is not in {directory}. {_hint(directory)}"


def _hint(directory: Path) -> str:
    return f"Run `manage.py models fetch {directory.name}`."
