"""The embedding model on onnxruntime.

A run of the model uses one thread, and as many runs go at once as there are cores. Measured on two cores, that is
as fast for passages as one run on two threads, costs a query about a millisecond, and halves a query's time when
other work keeps a core busy: threads inside a run wait for each other by spinning.
"""

import logging
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from retrieval.encoders.manifest import MODEL_FILE, TOKENIZER_FILE, Manifest, read_manifest
from retrieval.encoders.pooling import POOLINGS, length_sorted_batches, pad, unit_length
from retrieval.encoders.tokens import ModelTokenizer
from retrieval.errors import EncoderError

logger = logging.getLogger(__name__)

#: onnxruntime.InferenceSession; onnxruntime has no types.
_Session: TypeAlias = Any
_INPUTS: Final = frozenset({"input_ids", "attention_mask", "token_type_ids"})


class OnnxEncoder:
    """One model, loaded. Safe to call from several threads; `load_encoder` makes it."""

    def __init__(self, manifest: Manifest, tokenizer: ModelTokenizer, session: _Session, *, threads: int) -> None:
        self.manifest = manifest
        self._tokenizer = tokenizer
        self._session = session
        self._inputs = _input_names(session)
        self._threads = threads

    @property
    def name(self) -> str:
        """The model's name, as `manage.py models list` shows it."""
        return self.manifest.name

    @property
    def weights(self) -> str:
        """The sha256 of the weights as fetched, and how they were quantised."""
        return f"{self.manifest.source_sha256} {self.manifest.quantisation}"

    @property
    def dim(self) -> int:
        """The number of components of a vector."""
        return self.manifest.dim

    @property
    def max_tokens(self) -> int:
        """The longest input that the model reads, special tokens included."""
        return self.manifest.max_tokens

    def encode_query(self, text: str) -> NDArray[np.float32]:
        """Return the unit vector of a query, shape (dim,).

        A text beyond max_tokens is cut at the end. Raises EncoderError if the session fails.
        """
        vector: NDArray[np.float32] = self._run(self._tokenizer.encode([self.manifest.query_prefix + text]))[0]
        return vector

    def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors, shape (len(texts), dim), in input order.

        Texts beyond max_tokens are cut at the end. Raises EncoderError if the session fails.
        """
        token_ids = self._tokenizer.encode([self.manifest.document_prefix + text for text in texts])
        batches = length_sorted_batches([len(ids) for ids in token_ids], self.manifest.batch_tokens)
        vectors = np.zeros((len(texts), self.dim), np.float32)
        runs = self._run_all([[token_ids[position] for position in batch] for batch in batches])
        for batch, rows in zip(batches, runs, strict=True):
            vectors[batch] = rows
        return vectors

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text, without special tokens, nothing cut."""
        return self._tokenizer.count(texts)

    def token_spans(self, text: str) -> list[tuple[int, int]]:
        """Return the (start, end) character span of every token, without special tokens, nothing cut."""
        return self._tokenizer.spans(text)

    def _run_all(self, batches: Sequence[Sequence[Sequence[int]]]) -> Iterator[NDArray[np.float32]]:
        """Yield each batch's vectors in order, as many runs at once as there are threads."""
        workers = min(self._threads, len(batches))
        if workers <= 1:
            yield from map(self._run, batches)
            return
        # A pool for the call, not for the encoder: threads do not survive the fork of a worker process.
        with ThreadPoolExecutor(workers, thread_name_prefix="encode") as pool:
            yield from pool.map(self._run, batches)

    def _run(self, token_ids: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """Return the vectors of texts that share a run, shape (len(token_ids), dim)."""
        ids, mask = pad(token_ids)
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        try:
            states = self._session.run(None, {name: feed[name] for name in self._inputs})[0]
        except Exception as error:  # onnxruntime's errors share no base class of their own
            raise EncoderError(f"The model {self.name!r} failed: {error}") from error
        vectors = POOLINGS[self.manifest.pooling](states, mask)
        return unit_length(vectors) if self.manifest.normalise else vectors


def load_encoder(directory: Path, *, threads: int | None = None) -> OnnxEncoder:
    """Return the encoder of a model directory; `threads` texts are encoded at once (default: one a core).

    Raises ModelMissingError if the directory, its manifest or a file is missing, EncoderError if a file is damaged
    or the model does not fit its manifest.
    """
    manifest = read_manifest(directory)
    tokenizer = ModelTokenizer(directory / TOKENIZER_FILE, max_tokens=manifest.max_tokens)
    session = _open_session(directory / MODEL_FILE)
    threads = threads or _cores()
    encoder = OnnxEncoder(manifest, tokenizer, session, threads=threads)
    _check_fit(encoder, _input_names(session))
    logger.info("encoder.loaded name=%s dim=%d threads=%d", encoder.name, encoder.dim, threads)
    return encoder


def _open_session(path: Path) -> _Session:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    # Where the processor's int8 products can overflow (AVX2, AVX-512 without VNNI), trade speed for right sums.
    options.add_session_config_entry("session.x64quantprecision", "1")
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's errors share no base class of their own
        raise EncoderError(f"The model {path} cannot be loaded: {error}") from error


def _input_names(session: _Session) -> set[str]:
    return {node.name for node in session.get_inputs()}


def _check_fit(encoder: OnnxEncoder, inputs: set[str]) -> None:
    """Raise EncoderError unless the model takes the inputs that we have and gives vectors of the manifest's size."""
    if unknown := inputs - _INPUTS:
        raise EncoderError(f"The model {encoder.name!r} asks for inputs that CoreCube lacks: {sorted(unknown)}.")
    shape = encoder.encode_query("").shape
    if shape != (encoder.dim,):
        raise EncoderError(f"The model {encoder.name!r} gives vectors of shape {shape}, not of {encoder.dim} numbers.")


def _cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
