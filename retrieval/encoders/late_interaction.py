"""Late interaction: models with a vector for each token, and reranking by the best match of each token."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from corecube.process import cores
from retrieval.encoders.manifest import MODEL_FILE, TOKENIZER_FILE, LateInteractionManifest, Manifest, read_any_manifest
from retrieval.encoders.onnx_encoder import OnnxEncoder, load_encoder
from retrieval.encoders.pooling import unit_length
from retrieval.encoders.protocol import VectorModel
from retrieval.encoders.reranker import TimeBox
from retrieval.encoders.session import Session, input_names, open_session, run_in_parallel, run_texts
from retrieval.encoders.tokenizer import ModelTokenizer
from retrieval.engine.types import ScoreType
from retrieval.errors import EncoderError, RerankError

LATE_WEIGHT: Final = 0.5  #: Weight of late interaction beside a blend that reaches 1.
logger = logging.getLogger(__name__)


class LateInteraction:
    """Adds the best match of each query token with a token of the text to the blend."""

    score_type = ScoreType.MAXSIM
    blend_weight: float = LATE_WEIGHT
    problem = ""

    def __init__(self, encoder: OnnxEncoder, *, clock: Callable[[], float] = monotonic) -> None:
        self._encoder = encoder
        self.name = f"late interaction of {encoder.name}"
        self._clock = clock

    def score(self, query: str, texts: Sequence[str], *, timeout_seconds: float) -> list[float]:
        """Return the mean best cosine of the query's tokens with each text, -1 to 1, in input order.

        Raises RerankTimeoutError before texts that would exceed the time limit, RerankError if the model fails.
        """
        box = TimeBox(timeout_seconds, self._clock)
        step = self._encoder.threads
        try:
            query_vectors = box.run(lambda: self._encoder.token_vectors([query]))[0]
            scores: list[float] = []
            for start in range(0, len(texts), step):
                vectors = box.run(lambda start=start: self._encoder.token_vectors(texts[start : start + step]))  # type: ignore[misc]  # a default binds the loop's variable
                scores += [max_sim(query_vectors, found) for found in vectors]
        except EncoderError as error:
            raise RerankError(f"The model {self._encoder.name!r} failed.") from error
        return scores


def max_sim(query: NDArray[np.float32], text: NDArray[np.float32]) -> float:
    """Return the mean over the query's unit vectors of the highest cosine with one of the text's; 0 without tokens.

    Khattab and Zaharia, SIGIR 2020 (ColBERT), as a mean instead of a sum, which would grow with the query.
    """
    if not (len(query) and len(text)):
        return 0.0
    return float((query @ text.T).max(axis=1).mean())


class LateEncoder(VectorModel, Protocol):
    """Encodes the tokens of queries and documents; thread-safe."""

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


def load_late_encoder(directory: Path, *, embedder: Callable[[Path], OnnxEncoder] = load_encoder) -> LateEncoder:
    """Return the token encoder of a model directory: a late-interaction model, or an embedding model by `embedder`.

    Raises ModelMissingError if the directory, its manifest or a file is missing, EncoderError for a model of
    another kind, a damaged file, or a model that does not match its manifest.
    """
    manifest = read_any_manifest(directory)
    if isinstance(manifest, Manifest):
        return EmbeddingTokens(embedder(directory))
    if not isinstance(manifest, LateInteractionManifest):
        raise EncoderError(f"The model {manifest.name!r} of the kind {manifest.kind} has no token vectors.")
    # One token is for the mark.
    tokenizer = ModelTokenizer(directory / TOKENIZER_FILE, max_tokens=manifest.max_tokens - 1)
    session = open_session(directory / MODEL_FILE)
    encoder = TrainedTokens(manifest, tokenizer, session, threads=cores())
    encoder.query_vectors("query")
    logger.info("late_encoder.loaded name=%s dim=%d", encoder.name, encoder.dim)
    return encoder
