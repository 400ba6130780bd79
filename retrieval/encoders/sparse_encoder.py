"""Learned sparse vectors (SPLADE), and the local model that makes them."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from corecube.process import cores
from retrieval.encoders.manifest import MODEL_FILE, TOKENIZER_FILE, SparseManifest, read_manifest
from retrieval.encoders.session import Session, input_names, open_session, run_in_parallel, run_texts
from retrieval.encoders.tokenizer import ModelTokenizer
from retrieval.errors import EncoderError

logger = logging.getLogger(__name__)

_PER_TOKEN: Final = 3  #: Number of axes of an output with a weight for every word and token, and of a pooled output.
_POOLED: Final = 2


@dataclass(frozen=True, slots=True)
class SparseVector:
    """The weights above 0 of words of a vocabulary."""

    dim: int  #: Size of the vocabulary.
    places: tuple[int, ...]  #: Indexes into the vocabulary, from 0, ascending.
    weights: tuple[float, ...]

    def to_text(self) -> str:
        """Return the vector in pgvector's format, with indexes from 1."""
        entries = (f"{place + 1}:{weight:.6g}" for place, weight in zip(self.places, self.weights, strict=True))
        return f"{{{','.join(entries)}}}/{self.dim}"


def splade_weights(logits: NDArray[np.float32], mask: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the weight of each word of the vocabulary for a text: (tokens, words) -> (words,), each at least 0.

    The maximum of ln(1 + max(0, logit)) over the unmasked tokens. Formal et al., SPLADE v2, 2021.
    """
    unmasked = logits[mask.astype(bool)]
    weights: NDArray[np.float32] = np.log1p(np.maximum(unmasked, 0)).max(axis=0).astype(np.float32)
    return weights


def heaviest(weights: NDArray[np.float32], limit: int) -> SparseVector:
    """Return the words of the highest weights above 0, at most `limit`; ties go to the lower index."""
    order = np.lexsort((np.arange(len(weights)), -weights))[:limit]
    places = np.sort(order[weights[order] > 0])
    return SparseVector(len(weights), tuple(places.tolist()), tuple(weights[places].tolist()))


class SparseEncoder:
    """A loaded sparse model; thread-safe. `load_sparse_encoder` creates it."""

    def __init__(self, manifest: SparseManifest, tokenizer: ModelTokenizer, session: Session, *, threads: int) -> None:
        self.manifest = manifest
        self.name = manifest.name
        #: Identifies the weights and the length of vectors among models of the same name.
        self.weights = f"{manifest.source_sha256} {manifest.quantisation}, {manifest.max_terms} words"
        self.dim = manifest.vocabulary  #: Size of the vocabulary.
        self.threads = threads
        self._tokenizer = tokenizer
        self._session = session
        self._inputs = input_names(session, model=manifest.name)

    def encode_query(self, text: str) -> SparseVector:
        """Return a query's vector; raise EncoderError if the model fails."""
        return heaviest(self._run(self._tokenizer.encode([text])[0]), self.manifest.query_terms)

    def encode_documents(self, texts: Sequence[str]) -> list[SparseVector]:
        """Return the texts' vectors, in order, each text truncated to the model's limit; raise EncoderError."""
        runs = run_in_parallel(self._run, self._tokenizer.encode(texts), threads=self.threads)
        return [heaviest(weights, self.manifest.max_terms) for weights in runs]

    def _run(self, token_ids: Sequence[int]) -> NDArray[np.float32]:
        output, mask = run_texts(self._session, [token_ids], inputs=self._inputs, model=self.name)
        if output.ndim not in {_PER_TOKEN, _POOLED} or output.shape[-1] != self.dim:
            raise EncoderError(
                f"The model {self.name!r} gives an output of shape {output.shape}, not {self.dim} words."
            )
        if output.ndim == _POOLED:
            pooled: NDArray[np.float32] = np.maximum(output[0], 0).astype(np.float32)
            return pooled
        return splade_weights(output[0], mask[0])


def load_sparse_encoder(directory: Path, *, threads: int | None = None) -> SparseEncoder:
    """Return the encoder of a model directory; `threads` texts are encoded at once (default: one per core).

    Raises ModelMissingError if the directory, its manifest or a file is missing, EncoderError if a file is damaged or
    the model does not fit its manifest.
    """
    manifest = read_manifest(directory, SparseManifest)
    tokenizer = ModelTokenizer(directory / TOKENIZER_FILE, max_tokens=manifest.max_tokens)
    encoder = SparseEncoder(manifest, tokenizer, open_session(directory / MODEL_FILE), threads=threads or cores())
    encoder.encode_query("query")
    logger.info("sparse_encoder.loaded name=%s words=%d", encoder.name, encoder.dim)
    return encoder


@dataclass(frozen=True, slots=True)
class SparseModel:
    """The installation's sparse model."""

    encoder: SparseEncoder | None  #: None if it is unavailable.
    key: int = 0
    problem: str = ""  #: Why it is unavailable, as a sentence.
