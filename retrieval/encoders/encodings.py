"""The optional sparse and token models of the settings, which encode chunks in addition to the embedding model."""

import hashlib
from functools import cache

from django.conf import settings

from retrieval.encoders.late_encoder import LateEncoder, load_late_encoder
from retrieval.encoders.sparse_encoder import SparseEncoder, load_sparse_encoder

_KEY_BYTES = 7
_load_sparse = cache(load_sparse_encoder)
_load_late = cache(load_late_encoder)


def sparse_encoder() -> SparseEncoder | None:
    """Return the configured sparse model, None without one; raise as `load_sparse_encoder`."""
    name = settings.CORECUBE_SPARSE_MODEL
    return _load_sparse(settings.CORECUBE_MODELS_DIR / name) if name else None


def token_encoder() -> LateEncoder | None:
    """Return the configured model of stored token vectors, None without one; raise as `load_late_encoder`."""
    name = settings.CORECUBE_TOKEN_MODEL
    return _load_late(settings.CORECUBE_MODELS_DIR / name) if name else None


def key_of(model: SparseEncoder | LateEncoder) -> int:
    """Return the number, at least 0, that identifies the encodings of a model."""
    digest = hashlib.sha256(f"{model.name}\0{model.weights}".encode()).digest()
    return int.from_bytes(digest[:_KEY_BYTES])
