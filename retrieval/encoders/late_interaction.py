"""Reranking with the embedding model's own token vectors, computed for the candidates alone."""

from collections.abc import Callable, Sequence
from time import monotonic
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from retrieval.encoders.reranker import TimeBox
from retrieval.engine.types import ScoreType
from retrieval.errors import EncoderError, RerankError

#: Beside a blend that reaches 1.
_WEIGHT: Final = 0.5


class TokenEncoder(Protocol):
    """The part of an embedding model that late interaction needs."""

    @property
    def name(self) -> str:
        """The model's name."""

    @property
    def threads(self) -> int:
        """Texts that it encodes at once."""

    def token_vectors(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """Return the unit vectors of each text's tokens, shape (tokens, dim)."""


class LateInteraction:
    """Adds to the blend how well each token of the query is met by some token of the text."""

    score_type = ScoreType.MAXSIM
    blend_weight: float = _WEIGHT
    problem = ""

    def __init__(self, encoder: TokenEncoder, *, clock: Callable[[], float] = monotonic) -> None:
        self._encoder = encoder
        self._clock = clock

    @property
    def name(self) -> str:
        """The embedding model's name, and what is done with it."""
        return f"late interaction of {self._encoder.name}"

    def score(self, query: str, texts: Sequence[str], *, timeout_seconds: float) -> list[float]:
        """Return the mean best cosine of the query's tokens with each text, -1 to 1, in input order.

        Raises RerankTimeoutError before texts that would be ready too late, RerankError if the model fails.
        """
        box = TimeBox(timeout_seconds, self._clock)
        step = self._encoder.threads
        try:
            asked = box.run(lambda: self._encoder.token_vectors([query]))[0]
            scores: list[float] = []
            for start in range(0, len(texts), step):
                vectors = box.run(lambda start=start: self._encoder.token_vectors(texts[start : start + step]))  # type: ignore[misc]  # a default binds the loop's variable
                scores += [max_sim(asked, found) for found in vectors]
        except EncoderError as error:
            raise RerankError(f"The model {self._encoder.name!r} failed.") from error
        return scores


def max_sim(query: NDArray[np.float32], text: NDArray[np.float32]) -> float:
    """Return the mean over the query's unit vectors of the highest cosine with one of the text's; 0 without tokens.

    Khattab and Zaharia, SIGIR 2020 (ColBERT), as a mean, so that it does not grow with the query.
    """
    if not (len(query) and len(text)):
        return 0.0
    return float((query @ text.T).max(axis=1).mean())
