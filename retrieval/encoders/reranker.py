"""What the engine asks of a reranker."""

from collections.abc import Sequence
from typing import Protocol

from retrieval.types import ScoreType


class Reranker(Protocol):
    """Scores texts jointly with a query; safe to call from several threads."""

    @property
    def name(self) -> str:
        """The model's name, for traces."""

    @property
    def score_type(self) -> ScoreType:
        """What its scores mean."""

    def score(self, query: str, texts: Sequence[str], *, timeout_seconds: float) -> list[float]:
        """Return one finite score per text, in input order, higher is better.

        Raises RerankError (and its subclasses) when it fails, answers nonsense, or would take longer than
        `timeout_seconds`.
        """
