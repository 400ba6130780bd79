"""Judging whether the passages answer the question."""

from dataclasses import dataclass
from typing import ClassVar

from retrieval.config import AnswerabilityConfig
from retrieval.types import SearchState


@dataclass(frozen=True, slots=True)
class JudgeAnswerability:
    """Estimate from raw signals how likely the packed passages answer the question."""

    config: AnswerabilityConfig

    name: ClassVar[str] = "answerability"
    needs: ClassVar[frozenset[str]] = frozenset({"query", "terms", "vector", "passages"})
    gives: ClassVar[frozenset[str]] = frozenset({"answerability"})
    optional: ClassVar[bool] = True

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state with the verdict, its confidence and its reason."""
        return state
