"""Models with a vector for each token: those trained for late interaction, and embedding models."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from corecube.process import cores
from retrieval.encoders.manifest import MODEL_FILE, TOKENIZER_FILE, LateInteractionManifest, Manifest, read_any_manifest
from retrieval.encoders.onnx_encoder import OnnxEncoder, load_encoder
from retrieval.encoders.pooling import unit_length
from retrieval.encoders.session import Session, input_names, open_session, run_in_parallel, run_texts
from retrieval.encoders.tokenizer import ModelTokenizer
from retrieval.errors import EncoderError

logger = logging.getLogger(__name__)


class LateEncoder(Protocol):
    """Encodes the tokens of queries and documents; thread-safe."""

    @property
    def name(self) -> str:
        """The model's name, as `manage.py models list` shows it."""

    @property
    def weights(self) -> str:
        """Identifies the weights among models of the same name."""

    @property
    def dim(self) -> int:
        """The number of components of a token's vector."""

    @property
    def threads(self) -> int:
        """Number of texts that it encodes in parallel."""

    def query_vectors(self, text: str) -> NDArray[np.float32]:
        """Return the unit vectors of a query's tokens, shape (tokens, dim); raise EncoderError."""

    def document_vectors(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """Return the unit vectors of each text's tokens, shape (tokens, dim), in order; raise EncoderError."""


class EmbeddingTokens:
    """The token vectors of an embedding model that is not trained for late interaction."""

    def __init__(self, encoder: OnnxEncoder) -> None:
        self._encoder = encoder
        self.name = encoder.name
        self.weights = f"{encoder.weights} tokens"
        self.dim = encoder.manifest.dim
        self.threads = encoder.threads

    def query_vectors(self, text: str) -> NDArray[np.float32]:
        """Return the unit vectors of a query's tokens; raise EncoderError."""
        return self._encoder.token_vectors([text])[0]

    def document_vectors(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """Return the unit vectors of each text's tokens; raise EncoderError."""
        return self._encoder.token_vectors(texts)


class TrainedTokens:
    """A model that is trained for late interaction; `load_late_encoder` creates it."""

    def __init__(
        self, manifest: LateInteractionManifest, tokenizer: ModelTokenizer, session: Session, *, threads: int
    ) -> None:
        self.manifest = manifest
        self.name = manifest.name
        self.weights = f"{manifest.source_sha256} {manifest.quantisation}"
        self.dim = manifest.dim
        self.threads = threads
        self._tokenizer = tokenizer
        self._session = session
        self._inputs = input_names(session, model=manifest.name)

    def query_vectors(self, text: str) -> NDArray[np.float32]:
        """Return the unit vectors of a query's tokens, including padding with mask tokens; raise EncoderError."""
        ids = self._marked(self._tokenizer.encode([text])[0], self.manifest.query_mark)
        length = self.manifest.query_tokens
        return self._run([*ids, *[self.manifest.mask_token] * (length - len(ids))] if length else ids)

    def document_vectors(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """Return the unit vectors of each text's tokens, including marks; raise EncoderError."""
        inputs = [self._marked(ids, self.manifest.document_mark) for ids in self._tokenizer.encode(texts)]
        return list(run_in_parallel(self._run, inputs, threads=self.threads))

    def _marked(self, ids: Sequence[int], mark: int) -> list[int]:
        return [*ids[:1], *([mark] if mark >= 0 else []), *ids[1:]]

    def _run(self, token_ids: Sequence[int]) -> NDArray[np.float32]:
        states, _ = run_texts(self._session, [token_ids], inputs=self._inputs, model=self.name)
        if states.shape[2:] != (self.dim,):
            raise EncoderError(f"The model {self.name!r} has vectors of shape {states.shape}, not of {self.dim}.")
        return unit_length(states[0])


def load_late_encoder(directory: Path, *, threads: int | None = None) -> LateEncoder:
    """Return the token encoder of a model directory: a late-interaction model or an embedding model.

    Raises ModelMissingError if the directory, its manifest or a file is missing, EncoderError for a model of
    another kind, a damaged file, or a model that does not match its manifest.
    """
    manifest = read_any_manifest(directory)
    if isinstance(manifest, Manifest):
        return EmbeddingTokens(load_encoder(directory, threads=threads))
    if not isinstance(manifest, LateInteractionManifest):
        raise EncoderError(f"The model {manifest.name!r} of the kind {manifest.kind} has no token vectors.")
    # One token is for the mark.
    tokenizer = ModelTokenizer(directory / TOKENIZER_FILE, max_tokens=manifest.max_tokens - 1)
    session = open_session(directory / MODEL_FILE)
    encoder = TrainedTokens(manifest, tokenizer, session, threads=threads or cores())
    encoder.query_vectors("query")
    logger.info("late_encoder.loaded name=%s dim=%d", encoder.name, encoder.dim)
    return encoder
