"""The reranking services: requests and responses of each kind."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from retrieval.errors import RerankError

#: Models that compare vectors can have scores below 0; raw logits are outside this range.
_MIN_SCORE: Final = -1.0
_MAX_SCORE: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceKind:
    """The request and response format of a kind of service."""

    #: The provider's address; empty for a self-hosted service.
    address: str = ""
    #: Whether a request names the model.
    names_model: bool = True
    #: The request's fields for the texts and for the number of results; empty for a service that returns all.
    texts_field: str = "documents"
    count_field: str = "top_n"
    #: Additional fields of the request.
    options: Mapping[str, bool] = field(default_factory=dict)
    #: The response's field with the rows; empty if the response is the rows. Each row has an index and a score.
    rows_field: str = "results"
    score_field: str = "relevance_score"

    def request(self, query: str, texts: Sequence[str], *, model: str) -> dict[str, Any]:
        """Return the request body for the scores of all texts."""
        return {
            "query": query,
            self.texts_field: list(texts),
            **({"model": model} if self.names_model else {}),
            **({self.count_field: len(texts)} if self.count_field else {}),
            **self.options,
        }

    def scores(self, answer: object, *, count: int) -> list[float]:
        """Return the score of each text in the order of the request.

        Raises RerankError unless the response has exactly one row for each text, with a finite score from -1 to 1.
        """
        rows = answer
        if self.rows_field:
            rows = answer.get(self.rows_field) if isinstance(answer, dict) else None
        if not isinstance(rows, list):
            raise invalid_response("it has no list of scores")
        found: dict[int, float] = {}
        for row in rows:
            index, score = self._row(row, count=count)
            if index in found:
                raise invalid_response(f"text {index} has two scores")
            found[index] = score
        if len(found) != count:
            raise invalid_response(f"{len(found)} scores for {count} texts")
        return [found[index] for index in range(count)]

    def _row(self, row: object, *, count: int) -> tuple[int, float]:
        if not isinstance(row, dict):
            raise invalid_response("a row is not an object")
        index, score = row.get("index"), row.get(self.score_field)
        if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < count:
            raise invalid_response(f"a row belongs to none of the {count} texts")
        if not isinstance(score, int | float) or isinstance(score, bool):
            raise invalid_response("a score is not a number")
        # No comparison holds for NaN.
        if not _MIN_SCORE <= score <= _MAX_SCORE:
            raise invalid_response("a score is not between -1 and 1")
        return index, float(score)


def invalid_response(detail: str) -> RerankError:
    """Return the error for an invalid response; it contains nothing of the response."""
    return RerankError(f"The reranking service returned an invalid response: {detail}.")


SERVICE_KINDS: Final[Mapping[str, ServiceKind]] = MappingProxyType(
    {
        "cohere": ServiceKind(address="https://api.cohere.com/v2/rerank"),
        "jina": ServiceKind(address="https://api.jina.ai/v1/rerank", options={"return_documents": False}),
        "tei": ServiceKind(
            names_model=False,
            texts_field="texts",
            count_field="",
            options={"raw_scores": False, "truncate": True},
            rows_field="",
            score_field="score",
        ),
        "vllm": ServiceKind(),
        "voyage": ServiceKind(address="https://api.voyageai.com/v1/rerank", count_field="top_k", rows_field="data"),
    }
)
