"""The optional models that chunks are encoded with beside their vectors, as the settings name them."""

import hashlib
from functools import cache
from pathlib import Path

from django.conf import settings

from retrieval.encoders.late_encoder import LateEncoder, load_late_encoder
from retrieval.encoders.sparse_encoder import SparseEncoder, load_sparse_encoder

_KEY_BYTES = 7


def sparse_encoder() -> SparseEncoder | None:
    """Return the model of the sparse leg, None where none is configured; raise as `load_sparse_encoder`."""
    name = settings.CORECUBE_SPARSE_MODEL
    return _sparse(settings.CORECUBE_MODELS_DIR / name) if name else None


def token_encoder() -> LateEncoder | None:
    """Return the model whose token vectors are stored, None where none is; raise as `load_late_encoder`."""
    name = settings.CORECUBE_TOKEN_MODEL
    return _tokens(settings.CORECUBE_MODELS_DIR / name) if name else None


def key_of(model: SparseEncoder | LateEncoder) -> int:
    """Return the number by which what a model made is told from what others made, at least 0."""
    digest = hashlib.sha256(f"{model.name}\0{model.weights}".encode()).digest()
    return int.from_bytes(digest[:_KEY_BYTES])


@cache
def _sparse(directory: Path) -> SparseEncoder:
    return load_sparse_encoder(directory)


@cache
def _tokens(directory: Path) -> LateEncoder:
    return load_late_encoder(directory)
