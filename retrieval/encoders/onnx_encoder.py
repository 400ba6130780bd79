"""The embedding model on onnxruntime.

A run of the model uses one thread, and as many runs go at once as there are cores. Measured on two cores, that is
as fast for passages as one run on two threads, costs a query about a millisecond, and halves a query's time when
other work keeps a core busy: threads inside a run wait for each other by spinning.
"""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from corecube.errors import ConfigError
from corecube.process import cores
from retrieval.encoders.manifest import MODEL_FILE, TOKENIZER_FILE, Manifest, read_manifest
from retrieval.encoders.passages import windows
from retrieval.encoders.pooling import (
    POOLINGS,
    Floats,
    Ints,
    length_sorted_batches,
    pad,
    shortened,
    span_pooling,
    unit_length,
)
from retrieval.encoders.protocol import Batching
from retrieval.encoders.session import Session, input_names, open_session, side_by_side
from retrieval.encoders.tokens import MarkedTokens, ModelTokenizer
from retrieval.errors import EncoderError

logger = logging.getLogger(__name__)


class OnnxEncoder:
    """One model, loaded. Safe to call from several threads; `load_encoder` makes it."""

    batching = Batching()

    def __init__(
        self, manifest: Manifest, tokenizer: ModelTokenizer, session: Session, *, threads: int, dim: int = 0
    ) -> None:
        self.manifest = manifest
        self._dim = dim or manifest.dim
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
        """The sha256 of the weights as fetched, how they were quantised, and where its vectors are cut."""
        cut = "" if self.dim == self.manifest.dim else f", first {self.dim}"
        return f"{self.manifest.source_sha256} {self.manifest.quantisation}{cut}"

    @property
    def dim(self) -> int:
        """The number of components of a vector."""
        return self._dim

    @property
    def vocabulary(self) -> int:
        """How many tokens its tokenizer knows."""
        return self._tokenizer.vocabulary

    @property
    def tokenizer_file(self) -> str:
        """The path of its tokenizer's file, which counts tokens as it does."""
        return str(self._tokenizer.path)

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
        inputs = [[token_ids[position] for position in batch] for batch in batches]
        runs = side_by_side(self._run, inputs, threads=self.threads)
        for batch, rows in zip(batches, runs, strict=True):
            vectors[batch] = rows
        return vectors

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text, without special tokens, nothing cut."""
        return self._tokenizer.count(texts)

    def token_spans(self, text: str) -> list[tuple[int, int]]:
        """Return the (start, end) character span of every token, without special tokens, nothing cut."""
        return self._tokenizer.spans(text)

    def token_vectors(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """Return the unit vectors of each text's tokens, shape (tokens, dim), in input order.

        Without prefix and without the special tokens' states; a text beyond max_tokens is cut at the end. Raises
        EncoderError if the session fails.
        """
        return list(side_by_side(self._token_vectors, self._tokenizer.encode_marked(texts), threads=self.threads))

    @property
    def passages_problem(self) -> str:
        """Why the model cannot read a document as a whole; empty when it can."""
        if self.manifest.pooling == "mean":
            return ""
        return f"The model {self.name!r} takes a text's vector from its first token; only a mean can be split."

    def encode_passages(
        self, title: str, passages: Sequence[str], *, progress: Callable[[], None] = lambda: None
    ) -> NDArray[np.float32]:
        """Return the unit vectors of a document's passages, each pooled from a run over its neighbours too.

        A run holds the title and as many passages as fit into max_tokens; a passage that fits into none is cut at the
        end. `progress` is called before each run; what it raises ends the work. Raises EncoderError if the session
        fails.
        """
        before, after = self._tokenizer.frame()
        head, *pieces = self._tokenizer.pieces([f"{self.manifest.document_prefix}{title}\n", *passages])
        head = [*before, *head][: self.max_tokens // 4]
        room = self.max_tokens - len(head) - len(after)
        vectors = np.zeros((len(passages), self.dim), np.float32)
        for window in windows([len(piece) for piece in pieces], room):
            progress()
            ids = [*head, *(token for place in window.places for token in pieces[place][:room]), *after]
            states, _ = self._states([ids])
            spans = [(len(head) + first, len(head) + end) for first, end in window.spans]
            vectors[window.places] = shortened(unit_length(span_pooling(states[0], spans)), self.dim)
        return vectors

    def _token_vectors(self, text: MarkedTokens) -> NDArray[np.float32]:
        states, _ = self._states([text.ids])
        return unit_length(states[0][~np.array(text.special, dtype=bool)])

    def _run(self, token_ids: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """Return the vectors of texts that share a run, shape (len(token_ids), dim)."""
        states, mask = self._states(token_ids)
        vectors = POOLINGS[self.manifest.pooling](states, mask)
        return shortened(unit_length(vectors) if self.manifest.normalise else vectors, self.dim)

    @property
    def min_dim(self) -> int:
        """The fewest components that stand for the whole vector, 0 where none do."""
        return self.manifest.min_dim

    def token_states(self, text: str) -> tuple[Floats, Ints]:
        """Return what the model gives for a query's text, shape (1, tokens, dim), and the mask of its tokens."""
        return self._states(self._tokenizer.encode([self.manifest.query_prefix + text]))

    def _states(self, token_ids: Sequence[Sequence[int]]) -> tuple[Floats, Ints]:
        """Return the token states of texts that share a run, shape (texts, longest, dim), and their mask."""
        ids, mask = pad(token_ids)
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        try:
            return self._session.run(None, {name: feed[name] for name in self._inputs})[0], mask
        except Exception as error:  # onnxruntime's errors share no base class of their own
            raise EncoderError(f"The model {self.name!r} failed: {error}") from error


def load_encoder(directory: Path, *, threads: int | None = None, dim: int = 0) -> OnnxEncoder:
    """Return the encoder of a model directory; `threads` texts are encoded at once (default: one a core).

    `dim` cuts its vectors to their first components, 0 keeps them whole. Raises ModelMissingError if the directory,
    its manifest or a file is missing, EncoderError if a file is damaged or the model does not fit its manifest,
    ConfigError if its vectors must not be cut so.
    """
    manifest = read_manifest(directory)
    _check_dim(manifest, dim)
    tokenizer = ModelTokenizer(directory / TOKENIZER_FILE, max_tokens=manifest.max_tokens)
    session = open_session(directory / MODEL_FILE)
    threads = threads or cores()
    encoder = OnnxEncoder(manifest, tokenizer, session, threads=threads, dim=dim)
    _check_fit(encoder)
    logger.info("encoder.loaded name=%s dim=%d threads=%d", encoder.name, encoder.dim, threads)
    return encoder


def _check_fit(encoder: OnnxEncoder) -> None:
    """Raise EncoderError unless the model gives vectors of the manifest's size."""
    # The last axis of what the model itself gives, before a vector is cut.
    states, _ = encoder.token_states("")
    shape, dim = states.shape[2:], encoder.manifest.dim
    if shape != (dim,):
        raise EncoderError(f"The model {encoder.name!r} gives vectors of shape {shape}, not of {dim} numbers.")


def _check_dim(manifest: Manifest, dim: int) -> None:
    """Raise ConfigError unless the model's vectors may be cut to `dim` components; 0 stands for all of them."""
    if dim in {0, manifest.dim}:
        return
    if not manifest.min_dim:
        raise ConfigError(f"The vectors of the model {manifest.name!r} must not be cut; it has {manifest.dim} numbers.")
    if not manifest.min_dim <= dim <= manifest.dim:
        raise ConfigError(
            f"The vectors of the model {manifest.name!r} may be cut to {manifest.min_dim} to {manifest.dim}"
            f" numbers, not to {dim}."
        )
