"""A local model that gives a text a sparse vector over its vocabulary (SPLADE)."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from corecube.process import cores
from retrieval.encoders.manifest import MODEL_FILE, TOKENIZER_FILE, SparseManifest, read_sparse_manifest
from retrieval.encoders.pooling import pad
from retrieval.encoders.session import Session, input_names, open_session, side_by_side
from retrieval.encoders.sparse import SparseVector, heaviest, splade_weights
from retrieval.encoders.tokens import ModelTokenizer
from retrieval.errors import EncoderError

logger = logging.getLogger(__name__)

#: Axes of an output that has a weight for every word and token, and of one that the model has pooled itself.
_PER_TOKEN: Final = 3
_POOLED: Final = 2


class SparseEncoder:
    """One model, loaded. Safe to call from several threads; `load_sparse_encoder` makes it."""

    def __init__(self, manifest: SparseManifest, tokenizer: ModelTokenizer, session: Session, *, threads: int) -> None:
        self.manifest = manifest
        self.threads = threads
        self._tokenizer = tokenizer
        self._session = session
        self._inputs = input_names(session, model=manifest.name)

    @property
    def name(self) -> str:
        """The model's name, as `manage.py models list` shows it."""
        return self.manifest.name

    @property
    def weights(self) -> str:
        """Tells the weights, and what is kept of a vector, apart from others under the same name."""
        return f"{self.manifest.source_sha256} {self.manifest.quantisation}, {self.manifest.max_terms} words"

    @property
    def dim(self) -> int:
        """Words of the vocabulary."""
        return self.manifest.vocabulary

    def encode_query(self, text: str) -> SparseVector:
        """Return a query's vector; raise EncoderError if the model fails."""
        return heaviest(self._run(self._tokenizer.encode([text])[0]), self.manifest.query_terms)

    def encode_documents(self, texts: Sequence[str]) -> list[SparseVector]:
        """Return the texts' vectors, in order, each text cut at the model's limit; raise EncoderError."""
        runs = side_by_side(self._run, self._tokenizer.encode(texts), threads=self.threads)
        return [heaviest(weights, self.manifest.max_terms) for weights in runs]

    def _run(self, token_ids: Sequence[int]) -> NDArray[np.float32]:
        """Return the weight of every word for one text."""
        ids, mask = pad([token_ids])
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        try:
            output = self._session.run(None, {name: feed[name] for name in self._inputs})[0]
        except Exception as error:  # onnxruntime's errors share no base class of their own
            raise EncoderError(f"The model {self.name!r} failed: {error}") from error
        if output.ndim not in {_PER_TOKEN, _POOLED} or output.shape[-1] != self.dim:
            raise EncoderError(
                f"The model {self.name!r} gives an output of shape {output.shape}, not {self.dim} words."
            )
        if output.ndim == _POOLED:
            pooled: NDArray[np.float32] = np.maximum(output[0], 0).astype(np.float32)
            return pooled
        return splade_weights(output[0], mask[0])


def load_sparse_encoder(directory: Path, *, threads: int | None = None) -> SparseEncoder:
    """Return the encoder of a model directory; `threads` texts are encoded at once (default: one a core).

    Raises ModelMissingError if the directory, its manifest or a file is missing, EncoderError if a file is damaged or
    the model does not fit its manifest.
    """
    manifest = read_sparse_manifest(directory)
    tokenizer = ModelTokenizer(directory / TOKENIZER_FILE, max_tokens=manifest.max_tokens)
    encoder = SparseEncoder(manifest, tokenizer, open_session(directory / MODEL_FILE), threads=threads or cores())
    encoder.encode_query("query")
    logger.info("sparse.loaded name=%s words=%d", encoder.name, encoder.dim)
    return encoder


@dataclass(frozen=True, slots=True)
class SparseModel:
    """The installation's sparse model."""

    #: None for one that cannot be had.
    encoder: SparseEncoder | None
    key: int = 0
    #: A sentence on why it cannot be had.
    problem: str = ""
