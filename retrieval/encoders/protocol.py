"""What the engine asks of an embedding model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Batching:
    """How an encoder is best given many texts: so many a call, so many calls at once."""

    texts: int = 32
    calls: int = 2


class Encoder(Protocol):
    """Turns texts into unit vectors and counts their tokens; safe to call from several threads."""

    @property
    def name(self) -> str:
        """The model's name, as `manage.py models list` shows it."""

    @property
    def weights(self) -> str:
        """Tells the model's weights apart from others under the same name: vectors of two cannot be compared."""

    @property
    def dim(self) -> int:
        """The number of components of a vector."""

    @property
    def max_tokens(self) -> int:
        """The longest input that the model reads, special tokens included."""

    @property
    def tokenizer_file(self) -> str:
        """The path of the tokenizer's file that counts its tokens; empty where words and signs are its tokens."""

    @property
    def batching(self) -> Batching:
        """How `encode_documents` is best called for many texts."""

    def encode_query(self, text: str) -> NDArray[np.float32]:
        """Return the unit vector of a query, shape (dim,). Raise EncoderError if the model fails."""

    def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors, shape (len(texts), dim), in input order.

        Texts beyond max_tokens are cut at the end. Raises EncoderError if the model fails.
        """

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text, without special tokens, nothing cut."""

    def token_spans(self, text: str) -> list[tuple[int, int]]:
        """Return the (start, end) character span of every token, without special tokens, nothing cut."""


@runtime_checkable
class PassageEncoder(Protocol):
    """An encoder that can read a document as a whole and give each of its passages a vector (late chunking)."""

    @property
    def passages_problem(self) -> str:
        """Why it cannot; empty when it can."""

    def encode_passages(
        self, title: str, passages: Sequence[str], *, progress: Callable[[], None] = lambda: None
    ) -> NDArray[np.float32]:
        """Return unit vectors, shape (len(passages), dim), in order. Raise EncoderError if the model fails.

        `progress` is called before each run; what it raises ends the work.
        """
