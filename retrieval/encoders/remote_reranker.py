"""A reranker of an HTTP service: requests and responses of each kind."""

import json
import logging
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Final

from corecube.errors import ConfigError
from retrieval.encoders.bounded_http import BoundedClient, ServiceFaultError, ServiceTimeoutError, in_order, parsed
from retrieval.encoders.breaker import CircuitBreaker
from retrieval.encoders.embed_services import SERVICES
from retrieval.encoders.reranker import MIN_FAILURE_SECONDS
from retrieval.engine.types import ScoreType
from retrieval.errors import RerankError, RerankTimeoutError

logger = logging.getLogger(__name__)

_MIN_SCORE: Final = -1.0  #: Models that compare vectors can have scores below 0; raw logits are outside this range.
_MAX_SCORE: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceKind:
    """The request and response format of a kind of service."""

    address: str = ""  #: The provider's address; empty for a self-hosted service.
    names_model: bool = True
    #: The request's fields for the texts and for the number of results; empty for a service that returns all.
    texts_field: str = "documents"
    count_field: str = "top_n"
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
        """Return each text's score in order; raise RerankError unless each has one row, finite, from -1 to 1."""
        rows = answer
        if self.rows_field:
            rows = answer.get(self.rows_field) if isinstance(answer, dict) else None
        return in_order(rows, self._score, "score", count=count, invalid=invalid_response)

    def _score(self, row: Mapping[str, Any]) -> float:
        score = row.get(self.score_field)
        if not isinstance(score, int | float) or isinstance(score, bool):
            raise invalid_response("a score is not a number")
        # No comparison holds for NaN.
        if not _MIN_SCORE <= score <= _MAX_SCORE:
            raise invalid_response("a score is not between -1 and 1")
        return float(score)


def invalid_response(detail: str) -> RerankError:
    """Return the error for an invalid response; it contains nothing of the response."""
    return RerankError(f"The reranking service returned an invalid response: {detail}.")


SERVICE_KINDS: Final = {name: ServiceKind(**row) for name, row in SERVICES["reranking"].items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankService:
    """The settings of a reranking service. Raises ConfigError for a missing setting."""

    kind: str  #: A key of `SERVICE_KINDS`.
    url: str = ""  #: The address of requests with its path; empty for the provider's.
    model: str = ""
    api_key: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if self.kind not in SERVICE_KINDS:
            raise ConfigError(f"The kind of the reranking service must be one of {', '.join(SERVICE_KINDS)}.")
        if not self.address:
            raise ConfigError(f"A reranking service of the kind {self.kind} needs its address.")
        if self.shape.names_model and not self.model:
            raise ConfigError(f"A reranking service of the kind {self.kind} needs the name of a model.")

    @property
    def shape(self) -> ServiceKind:
        """The request and response format."""
        return SERVICE_KINDS[self.kind]

    @property
    def address(self) -> str:
        """The address of requests."""
        return self.url or self.shape.address


class RemoteReranker:
    """Scores texts by a service; thread-safe.

    After three consecutive failures the service is not called for half a minute, so that an outage does not delay every
    search. A timeout below a second is not a failure.
    """

    score_type = ScoreType.RELEVANCE
    blend_weight: float | None = None

    def __init__(self, service: RerankService, *, breaker: CircuitBreaker | None = None) -> None:
        self._service = service
        self.name = service.model or service.kind  #: A service that has only one model has no model name.
        self._breaker: CircuitBreaker | None = breaker or CircuitBreaker(f"{service.address} {service.model}")
        self._client = BoundedClient(service.api_key)

    @property
    def problem(self) -> str:
        """Why it cannot be used now; empty if it can."""
        is_open = self._breaker is not None and self._breaker.is_open
        return "The reranking service failed several times in a row." if is_open else ""

    def without_breaker(self) -> "RemoteReranker":
        """Return a reranker with the same connections and no breaker, for callers that have one."""
        unguarded = copy(self)
        unguarded._breaker = None  # noqa: SLF001 -- the same class
        return unguarded

    def score(self, query: str, texts: Sequence[str], *, timeout_seconds: float) -> list[float]:
        """Return the service's relevance of each text, -1 to 1 and mostly from 0, in input order.

        Raises RerankBreakerOpenError while the breaker is open, RerankTimeoutError after `timeout_seconds`, RerankError
        for a failure or an invalid response.
        """
        body = json.dumps(self._service.shape.request(query, texts, model=self._service.model)).encode()
        excused = (RerankTimeoutError,) if timeout_seconds < MIN_FAILURE_SECONDS else ()
        with nullcontext() if self._breaker is None else self._breaker.guarding(excused=excused):
            return self._request(body, count=len(texts), timeout_seconds=timeout_seconds)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _request(self, body: bytes, *, count: int, timeout_seconds: float) -> list[float]:
        try:
            content = self._post(body, timeout_seconds=timeout_seconds)
            return self._service.shape.scores(parsed(content, invalid=invalid_response), count=count)
        except RerankError as error:
            logger.warning("reranking.request_failed kind=%s code=%s reason=%s", self._service.kind, error.code, error)
            raise

    def _post(self, body: bytes, *, timeout_seconds: float) -> bytes:
        try:
            return self._client.post(self._service.address, body, timeout_seconds=timeout_seconds)
        except ServiceTimeoutError as error:
            raise RerankTimeoutError from error
        except ServiceFaultError as error:
            raise RerankError(f"The reranking service {error}.") from error
