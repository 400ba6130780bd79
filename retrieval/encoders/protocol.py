"""The protocols of embedding models."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Batching:
    """An encoder's best batch size in texts, and number of parallel calls."""

    texts: int = 32
    calls: int = 2


class VectorModel(Protocol):
    """What every model of vectors has."""

    @property
    def name(self) -> str:
        """The model's name, as `manage.py models list` shows it."""

    @property
    def weights(self) -> str:
        """Identifies the weights among models of the same name: vectors of different weights are not comparable."""

    @property
    def dim(self) -> int:
        """The number of components of a vector."""


class Encoder(VectorModel, Protocol):
    """Encodes texts as unit vectors and counts their tokens; thread-safe."""

    @property
    def max_tokens(self) -> int:
        """Maximum input length, including special tokens."""

    @property
    def tokenizer_file(self) -> str:
        """The path of its tokenizer's file; empty if words and punctuation are its tokens."""

    @property
    def batching(self) -> Batching:
        """The best batches for `encode_documents`."""

    def encode_query(self, text: str) -> NDArray[np.float32]:
        """Return the unit vector of a query, shape (dim,). Raise EncoderError if the model fails."""

    def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors in order, shape (len(texts), dim), of texts of any length; raise EncoderError."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text, without special tokens and truncation."""

    def token_spans(self, text: str) -> list[tuple[int, int]]:
        """Return the (start, end) character span of every token, without special tokens and truncation."""


@runtime_checkable
class WindowEncoder(Protocol):
    """An encoder that reads a text longer than max_tokens in overlapping windows and pools their vectors."""

    def count_windows(self, texts: Sequence[str]) -> list[int]:
        """Return the number of windows of each text: 1 unless it is longer than max_tokens."""


@runtime_checkable
class PassageEncoder(Protocol):
    """An encoder that reads a complete document and returns a vector for each passage (late chunking)."""

    @property
    def passages_problem(self) -> str:
        """Why the model does not support it; empty if it does."""

    def encode_passages(
        self, title: str, passages: Sequence[str], *, progress: Callable[[], None] = lambda: None
    ) -> NDArray[np.float32]:
        """Return unit vectors, shape (len(passages), dim), in order. Raise EncoderError if the model fails.

        `progress` is called before each run; its errors end the work.
        """
