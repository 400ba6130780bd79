"""What the engine asks of an embedding model."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


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
