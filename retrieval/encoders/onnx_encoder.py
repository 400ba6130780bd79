"""Embedding models on onnxruntime.

A run of the model uses one thread, and as many runs are parallel as there are cores. Measured on two cores, this is as
fast for passages as one run on two threads, costs a query about a millisecond, and halves a query's time while other
work uses a core: the threads of one run wait for each other by spinning.
"""

import logging
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding

from corecube.errors import ConfigError
from corecube.process import cores
from retrieval.encoders import pooling
from retrieval.encoders.manifest import MODEL_FILE, TOKENIZER_FILE, Manifest, read_manifest
from retrieval.encoders.protocol import Batching
from retrieval.encoders.session import (
    GPU_BATCH_TOKENS,
    Session,
    input_names,
    is_on_gpu,
    open_session,
    run_in_parallel,
    run_texts,
)
from retrieval.encoders.tokenizer import ModelTokenizer
from retrieval.errors import EncoderError

logger = logging.getLogger(__name__)


class OnnxEncoder:
    """A loaded embedding model; thread-safe. `load_encoder` creates it."""

    def __init__(
        self, manifest: Manifest, tokenizer: ModelTokenizer, session: Session, *, threads: int, dim: int = 0
    ) -> None:
        self.manifest = manifest
        self.name = manifest.name
        self.dim = dim or manifest.dim
        self.min_dim = manifest.min_dim  #: Minimum number of components after truncation, 0 without truncation.
        cut = "" if self.dim == manifest.dim else f", first {self.dim}"
        self.weights = f"{manifest.source_sha256} {manifest.quantisation}{cut}"
        self.max_tokens = manifest.max_tokens
        self.tokenizer_file = str(tokenizer.path)
        self.vocabulary = tokenizer.vocabulary
        on_gpu = is_on_gpu(session)
        self.threads = 1 if on_gpu else threads
        self.batching = Batching(texts=256) if on_gpu else Batching()
        self._batch_tokens = max(manifest.batch_tokens, GPU_BATCH_TOKENS if on_gpu else 0)
        self._tokenizer = tokenizer
        self._session = session
        self._inputs = input_names(session, model=manifest.name)
        if self._batch_tokens and "attention_mask" not in self._inputs:
            raise EncoderError(
                f"The model {manifest.name!r} has no mask, so texts cannot share a run: its batch_tokens must be 0."
            )

    def encode_query(self, text: str) -> NDArray[np.float32]:
        """Return the unit vector of a query, truncated to max_tokens, shape (dim,); raise EncoderError."""
        vector: NDArray[np.float32] = self._run(self._tokenizer.encode([self.manifest.query_prefix + text]))[0]
        return vector

    def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the unit vectors of texts, shape (len(texts), dim); raise EncoderError.

        The vector of a text longer than max_tokens is pooled from overlapping windows.
        """
        windows = self._windows(texts)
        token_ids = list(chain.from_iterable(windows))
        batches = pooling.length_sorted_batches([len(ids) for ids in token_ids], self._batch_tokens)
        vectors = np.zeros((len(token_ids), self.dim), np.float32)
        inputs = [[token_ids[position] for position in batch] for batch in batches]
        runs = run_in_parallel(self._run, inputs, threads=self.threads)
        for batch, rows in zip(batches, runs, strict=True):
            vectors[batch] = rows
        return pooling.window_pooling(vectors, [[len(ids) for ids in each] for each in windows])

    def count_windows(self, texts: Sequence[str]) -> list[int]:
        """Return the number of runs of the model that each document's text takes."""
        return [len(windows) for windows in self._windows(texts)]

    def _windows(self, texts: Sequence[str]) -> list[list[list[int]]]:
        return self._tokenizer.windows([self.manifest.document_prefix + text for text in texts])

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text, without special tokens and truncation."""
        return self._tokenizer.count(texts)

    def token_spans(self, text: str) -> list[tuple[int, int]]:
        """Return the (start, end) character span of every token, without special tokens and truncation."""
        return self._tokenizer.spans(text)

    def token_vectors(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """Return the unit vectors of each text's tokens, shape (tokens, dim), in input order; raise EncoderError.

        Without prefix and special tokens; the tokens that windows of a longer text share have a vector in each.
        """
        return list(run_in_parallel(self._token_vectors, self._tokenizer.marked_windows(texts), threads=self.threads))

    @property
    def passages_problem(self) -> str:
        """Why the model does not support late chunking; empty if it does."""
        if self.manifest.pooling == "mean":
            return ""
        return f"The model {self.name!r} has no mean pooling, which late chunking needs."

    def encode_passages(
        self, title: str, passages: Sequence[str], *, progress: Callable[[], None] = lambda: None
    ) -> NDArray[np.float32]:
        """Return the unit vectors of a document's passages, each pooled from a run with its neighbours.

        A run contains the title and as many passages as fit into max_tokens; a longer passage is pooled from
        overlapping parts. `progress` is called before each run; its errors end the work. Raises EncoderError if the
        session fails.
        """
        before, after = self._tokenizer.frame()
        head, *pieces = self._tokenizer.pieces([f"{self.manifest.document_prefix}{title}\n", *passages])
        head = [*before, *head][: self.max_tokens // 4]
        room = self.max_tokens - len(head) - len(after)
        divided = [pooling.overlapping(piece, room, self._tokenizer.overlap) for piece in pieces]
        parts = list(chain.from_iterable(divided))
        vectors = np.zeros((len(parts), self.dim), np.float32)
        for window in pooling.windows([len(part) for part in parts], room):
            progress()
            ids = [*head, *(token for place in window.places for token in parts[place]), *after]
            states, _ = self._states([ids])
            spans = [(len(head) + first, len(head) + end) for first, end in window.spans]
            vectors[window.places] = pooling.shortened(
                pooling.unit_length(pooling.span_pooling(states[0], spans)), self.dim
            )
        return pooling.window_pooling(vectors, [[len(part) for part in each] for each in divided])

    def _token_vectors(self, windows: Sequence[Encoding]) -> NDArray[np.float32]:
        states = [self._states([it.ids])[0][0][~np.array(it.special_tokens_mask, dtype=bool)] for it in windows]
        return pooling.unit_length(np.concatenate(states))

    def _run(self, token_ids: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """Return the vectors of texts that share a run, shape (len(token_ids), dim)."""
        states, mask = self._states(token_ids)
        vectors = pooling.POOLINGS[self.manifest.pooling](states, mask)
        return pooling.shortened(pooling.unit_length(vectors) if self.manifest.normalise else vectors, self.dim)

    def token_states(self, text: str) -> tuple[pooling.Floats, pooling.Ints]:
        """Return the model's output for a query, shape (1, tokens, dim), and the mask of its tokens."""
        return self._states(self._tokenizer.encode([self.manifest.query_prefix + text]))

    def _states(self, token_ids: Sequence[Sequence[int]]) -> tuple[pooling.Floats, pooling.Ints]:
        """Return the token states of texts that share a run, shape (texts, longest, dim), and their mask."""
        return run_texts(self._session, token_ids, inputs=self._inputs, model=self.name)


def load_encoder(directory: Path, *, threads: int | None = None, dim: int = 0) -> OnnxEncoder:
    """Return the encoder of a model directory; `threads` texts are encoded in parallel (default: one per core).

    `dim` truncates vectors to their first components, 0 does not. Raises ModelMissingError if the directory, its
    manifest or a file is missing, EncoderError if a file is damaged or the model does not match its manifest,
    ConfigError if the model does not allow this truncation.
    """
    manifest = read_manifest(directory, Manifest)
    _check_dim(manifest, dim)
    tokenizer = ModelTokenizer(directory / TOKENIZER_FILE, max_tokens=manifest.max_tokens)
    session = open_session(directory / MODEL_FILE, may_use_gpu=manifest.batch_tokens > 0)
    threads = threads or cores()
    encoder = OnnxEncoder(manifest, tokenizer, session, threads=threads, dim=dim)
    # The last axis of the model's output, before truncation.
    states, _ = encoder.token_states("")
    if states.shape[2:] != (manifest.dim,):
        raise EncoderError(f"The model {encoder.name!r} has vectors of shape {states.shape[2:]}, not {manifest.dim}.")
    device = "gpu" if is_on_gpu(session) else "cpu"
    logger.info("encoder.loaded name=%s dim=%d threads=%d device=%s", encoder.name, encoder.dim, threads, device)
    return encoder


def _check_dim(manifest: Manifest, dim: int) -> None:
    """Raise ConfigError unless the model allows truncation to `dim` components; 0 means all of them."""
    if dim in {0, manifest.dim}:
        return
    if not manifest.min_dim:
        raise ConfigError(f"The model {manifest.name!r} has {manifest.dim} dimensions and does not support fewer.")
    if not manifest.min_dim <= dim <= manifest.dim:
        raise ConfigError(
            f"The model {manifest.name!r} supports {manifest.min_dim} to {manifest.dim} dimensions, not {dim}."
        )
