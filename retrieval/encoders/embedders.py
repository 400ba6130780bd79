"""The embedding models of an installation, by its settings and its model folders, and optional models."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from threading import Lock
from typing import Any, Final

from django.conf import settings

from corecube.errors import ConfigError
from retrieval.encoders.embed_services import EmbedService
from retrieval.encoders.late_interaction import LateEncoder, load_late_encoder
from retrieval.encoders.manifest import TOKENIZER_FILE, Manifest, read_manifest
from retrieval.encoders.onnx_encoder import load_encoder
from retrieval.encoders.protocol import Encoder, VectorModel
from retrieval.encoders.remote_encoder import RemoteEncoder
from retrieval.encoders.sparse_encoder import SparseEncoder, load_sparse_encoder
from retrieval.encoders.tokenizer import ModelTokenizer
from retrieval.encoders.torch_models import SENTENCE_TRANSFORMERS, is_torch_folder, load_torch_encoder
from retrieval.models import EmbeddingIndex

_LOCAL: Final = "local:"
_TORCH: Final = f"{SENTENCE_TRANSFORMERS}:"
_FOLDER: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,199}", re.ASCII | re.IGNORECASE)
_loading: Final = Lock()  #: Concurrent threads load a model once.
_KEY_BYTES = 7
_load_onnx = cache(load_encoder)
_load_sparse = cache(load_sparse_encoder)
_load_late = cache(partial(load_late_encoder, embedder=partial(_load_onnx, dim=0)))


@dataclass(frozen=True, slots=True)
class Choice:
    """An available embedding model: a folder, or a model of a service."""

    directory: Path  #: A model folder: the model, or the tokenizer for a service.
    dim: int = 0  #: Number of components that a local model's vectors are truncated to; 0 for no truncation.
    service: EmbedService | None = None  #: None for a local model.
    is_torch: bool = False  #: Whether the library sentence-transformers runs the model.

    @property
    def source(self) -> str:
        """The source of the model, as an embedding index stores it."""
        if self.service:
            return self.service.kind
        return f"{_TORCH if self.is_torch else _LOCAL}{self.directory.name}"

    def load(self) -> Encoder:
        """Return the encoder, the same each time; raise ModelMissingError, EncoderError if damaged, ConfigError."""
        with _loading:
            return _loaded(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """The embedding models of an installation's settings."""

    models_dir: Path
    model: str
    dim: int = 0
    is_torch: bool = False  #: Whether the library sentence-transformers runs the model; else its folder tells.
    #: Fields of an `EmbedService`; None without a service.
    service: Mapping[str, Any] | None = field(default=None, repr=False)
    next_service: Mapping[str, Any] | None = field(default=None, repr=False)
    calls: int = 8

    def configured(self) -> Choice:
        """Return the model for the first index."""
        if self.service:
            return self._at_service(self.service)
        local = self.local(self.model, self.dim)
        return replace(local, is_torch=local.is_torch or self.is_torch)

    def next(self) -> Choice:
        """Return the next service to change to; raise ConfigError if none is configured."""
        if not self.next_service:
            raise ConfigError("CORECUBE_NEXT_EMBEDDER is not set.")
        return self._at_service(self.next_service)

    def local(self, folder: str, dim: int = 0) -> Choice:
        """Return a local model; raise ConfigError for an invalid folder name."""
        if not _FOLDER.fullmatch(folder):
            raise ConfigError(f"{folder!r} is not a name of a model folder.")
        directory = self.models_dir / folder
        return Choice(directory, dim, is_torch=is_torch_folder(directory))

    def of_index(self, *, source: str, model: str, dim: int) -> Choice:
        """Return the model of an index's vectors; raise ModelMissingError, ConfigError for an undescribed service."""
        if source.startswith(_TORCH):
            return replace(self.local(source.removeprefix(_TORCH)), is_torch=True)
        if not source or source.startswith(_LOCAL):
            choice = self.local(source.removeprefix(_LOCAL) or model)
            return choice if dim == _full_dim(choice.directory) else self.local(choice.directory.name, dim)
        for fields in (self.service, self.next_service):
            if fields and (fields["kind"], fields["model"], fields["dim"]) == (source, model, dim):
                return self._at_service(fields)
        raise ConfigError(
            f"The embedding index was built with {model} ({dim} dimensions) of a {source} service, but neither"
            " CORECUBE_EMBEDDER nor CORECUBE_NEXT_EMBEDDER describes it."
        )

    def _at_service(self, fields: Mapping[str, Any]) -> Choice:
        return Choice(self.models_dir / self.model, service=EmbedService(**fields, calls=self.calls))


@cache
def _full_dim(directory: Path) -> int:
    """Return the dimensions of a model folder; read once, as the model is loaded once."""
    return read_manifest(directory, Manifest).dim


@cache
def _loaded(choice: Choice) -> Encoder:
    if choice.is_torch:
        return load_torch_encoder(choice.directory, dim=choice.dim)
    if choice.service is None:
        return _load_onnx(choice.directory, dim=choice.dim)
    read_manifest(choice.directory, Manifest)
    tokenizer = ModelTokenizer(choice.directory / TOKENIZER_FILE, max_tokens=choice.service.max_tokens)
    return RemoteEncoder(choice.service, tokenizer)


def choices() -> Choices:
    """Return the embedding models of the settings."""
    return Choices(
        models_dir=settings.CORECUBE_MODELS_DIR,
        model=settings.CORECUBE_MODEL,
        dim=settings.CORECUBE_MODEL_DIMENSIONS,
        is_torch=settings.CORECUBE_EMBEDDER_IS_TORCH,
        service=settings.CORECUBE_EMBEDDER,
        next_service=settings.CORECUBE_NEXT_EMBEDDER,
        calls=settings.CORECUBE_EMBED_CONCURRENCY,
    )


def of_index(row: EmbeddingIndex) -> Choice:
    """Return the model of an index's vectors; raise ConfigError, ModelMissingError or EncoderError."""
    return choices().of_index(source=row.source, model=row.model, dim=row.dim)


def sparse_encoder() -> SparseEncoder | None:
    """Return the configured sparse model, None without one; raise as `load_sparse_encoder`."""
    name = settings.CORECUBE_SPARSE_MODEL
    return _load_sparse(settings.CORECUBE_MODELS_DIR / name) if name else None


def token_encoder() -> LateEncoder | None:
    """Return the configured model of stored token vectors, None without one; raise as `load_late_encoder`.

    An embedding model is loaded once, for the vectors of texts and of tokens.
    """
    name = settings.CORECUBE_TOKEN_MODEL
    with _loading:
        return _load_late(settings.CORECUBE_MODELS_DIR / name) if name else None


def key_of(model: VectorModel, *details: str) -> int:
    """Return the number, at least 0, that identifies the encodings of a model with these details."""
    digest = hashlib.sha256("\0".join((model.name, model.weights, *details)).encode()).digest()
    return int.from_bytes(digest[:_KEY_BYTES])
