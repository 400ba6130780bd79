"""Late interaction: token vectors with one byte per component, and reranking with an embedding model's token vectors.

Quantising loses little: the greatest error of a component is 1/254 of its vector's greatest component.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Final, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from retrieval.encoders.reranker import TimeBox
from retrieval.engine.types import ScoreType
from retrieval.errors import EncoderError, RerankError

#: The blend's maximum is 1.
_WEIGHT: Final = 0.5
_STEPS: Final = 127


@dataclass(frozen=True, slots=True)
class TokenVectors:
    """The quantised vectors of a text's tokens: component = step x scale of its token."""

    #: Shape (tokens, dim), -127 to 127.
    steps: NDArray[np.int8]
    #: Shape (tokens,), at least 0.
    scales: NDArray[np.float32]

    @classmethod
    def of(cls, vectors: NDArray[np.float32]) -> Self:
        """Quantise vectors of shape (tokens, dim), each by its greatest component."""
        scales = np.abs(vectors).max(axis=1, initial=0.0) / _STEPS
        steps = np.rint(vectors / np.where(scales > 0, scales, 1)[:, None])
        return cls(steps.astype(np.int8), scales.astype(np.float32))

    @classmethod
    def read(cls, steps: bytes, scales: bytes, dim: int) -> Self:
        """Return the vectors that `to_bytes` wrote, of `dim` components; raise ValueError for other lengths."""
        found = cls(np.frombuffer(steps, np.int8).reshape(-1, dim), np.frombuffer(scales, "<f4").astype(np.float32))
        if len(found.steps) != len(found.scales):
            raise ValueError("steps and scales are of different tokens")
        return found

    def to_bytes(self) -> tuple[bytes, bytes]:
        """Return the steps, token after token, and the scales as little-endian float32."""
        return self.steps.tobytes(), self.scales.astype("<f4").tobytes()

    def max_sim(self, query: NDArray[np.float32]) -> float:
        """Return the score of `max_sim` for these vectors."""
        if not (len(query) and len(self.steps)):
            return 0.0
        products = query @ self.steps.astype(np.float32).T
        return float((products * self.scales).max(axis=1).mean())


class TokenEncoder(Protocol):
    """The part of an embedding model that late interaction needs."""

    @property
    def name(self) -> str:
        """The model's name."""

    @property
    def threads(self) -> int:
        """Number of texts that it encodes in parallel."""

    def token_vectors(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """Return the unit vectors of each text's tokens, shape (tokens, dim)."""


class LateInteraction:
    """Adds the best match of each query token with a token of the text to the blend."""

    score_type = ScoreType.MAXSIM
    blend_weight: float = _WEIGHT
    problem = ""

    def __init__(self, encoder: TokenEncoder, *, clock: Callable[[], float] = monotonic) -> None:
        self._encoder = encoder
        self._clock = clock

    @property
    def name(self) -> str:
        """The reranker's name with that of the embedding model."""
        return f"late interaction of {self._encoder.name}"

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
