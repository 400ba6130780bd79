"""The reranking services: how each wants to be asked, and where its answer has the scores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from retrieval.errors import RerankError

#: Scores of models that compare vectors can fall below 0; a model's raw outputs leave this range.
_MIN_SCORE: Final = -1.0
_MAX_SCORE: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceKind:
    """The shape of one kind of service's requests and answers."""

    #: Where the provider's own service listens; empty for a kind that people run themselves.
    address: str = ""
    #: Whether one service has several models, so that a request names one.
    names_model: bool = True
    #: The request's fields for the texts and for the number of results wanted; empty for one that always gives all.
    texts_field: str = "documents"
    count_field: str = "top_n"
    #: What else a request says.
    options: Mapping[str, bool] = field(default_factory=dict)
    #: The answer's field with the rows; empty where the rows are the answer. Each row has an index and a score.
    rows_field: str = "results"
    score_field: str = "relevance_score"

    def request(self, query: str, texts: Sequence[str], *, model: str) -> dict[str, Any]:
        """Return the body that asks for the score of every text."""
        return {
            "query": query,
            self.texts_field: list(texts),
            **({"model": model} if self.names_model else {}),
            **({self.count_field: len(texts)} if self.count_field else {}),
            **self.options,
        }

    def scores(self, answer: object, *, count: int) -> list[float]:
        """Return the score of each text in the order of the request.

        Raises RerankError unless the answer has exactly one row for each text, with a finite score from -1 to 1.
        """
        rows = answer
        if self.rows_field:
            rows = answer.get(self.rows_field) if isinstance(answer, dict) else None
        if not isinstance(rows, list):
            raise _garbage("it holds no list of scores")
        found: dict[int, float] = {}
        for row in rows:
            index, score = self._row(row, count=count)
            if index in found:
                raise _garbage(f"text {index} has two scores")
            found[index] = score
        if len(found) != count:
            raise _garbage(f"{len(found)} scores for {count} texts")
        return [found[index] for index in range(count)]

    def _row(self, row: object, *, count: int) -> tuple[int, float]:
        if not isinstance(row, dict):
            raise _garbage("a row is no object")
        index, score = row.get("index"), row.get(self.score_field)
        if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < count:
            raise _garbage(f"a row's index is none of the {count} texts")
        if not isinstance(score, int | float) or isinstance(score, bool):
            raise _garbage("a score is no number")
        # No comparison holds for NaN.
        if not _MIN_SCORE <= score <= _MAX_SCORE:
            raise _garbage("a score lies outside -1 to 1")
        return index, float(score)


def _garbage(detail: str) -> RerankError:
    return RerankError(f"The reranking service answered garbage: {detail}.")


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
