"""Vectors of a text's tokens in a byte a component, and late interaction with them. Pure.

Unit vectors lose little: the greatest error of a component is half a step, which is 1/254 of its vector's greatest one.
"""

from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

_STEPS: Final = 127


@dataclass(frozen=True, slots=True)
class TokenVectors:
    """The vectors of a text's tokens, quantised: component = step x scale of its token."""

    #: Shape (tokens, dim), -127 to 127.
    steps: NDArray[np.int8]
    #: Shape (tokens,), at least 0.
    scales: NDArray[np.float32]

    @classmethod
    def of(cls, vectors: NDArray[np.float32]) -> Self:
        """Return vectors of shape (tokens, dim) quantised, each by its own greatest component."""
        scales = np.abs(vectors).max(axis=1, initial=0.0) / _STEPS
        steps = np.rint(vectors / np.where(scales > 0, scales, 1)[:, None])
        return cls(steps.astype(np.int8), scales.astype(np.float32))

    @classmethod
    def read(cls, steps: bytes, scales: bytes, dim: int) -> Self:
        """Return what `bytes_of` wrote for vectors of so many components; raise ValueError for other lengths."""
        found = cls(np.frombuffer(steps, np.int8).reshape(-1, dim), np.frombuffer(scales, "<f4").astype(np.float32))
        if len(found.steps) != len(found.scales):
            raise ValueError("steps and scales are of different tokens")
        return found

    def to_bytes(self) -> tuple[bytes, bytes]:
        """Return the steps, token after token, and the scales as little-endian float32."""
        return self.steps.tobytes(), self.scales.astype("<f4").tobytes()

    def max_sim(self, query: NDArray[np.float32]) -> float:
        """Return the mean over the query's unit vectors of the highest cosine with a token; 0 without tokens.

        Khattab and Zaharia, SIGIR 2020 (ColBERT), as a mean, so that it does not grow with the query.
        """
        if not (len(query) and len(self.steps)):
            return 0.0
        products = query @ self.steps.astype(np.float32).T
        return float((products * self.scales).max(axis=1).mean())
