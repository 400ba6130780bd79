"""An embedding model of an HTTP service."""

import json
import logging
import random
import time
from collections.abc import Callable, Sequence
from functools import partial
from time import monotonic
from typing import Final

import numpy as np
from numpy.typing import NDArray

from corecube.shared_state.store import MemoryStore, Store, shared
from retrieval.encoders.bounded_http import BoundedClient, ServiceFaultError, parsed
from retrieval.encoders.breaker import CircuitBreaker
from retrieval.encoders.embed_services import EmbedService, invalid_response
from retrieval.encoders.protocol import Batching
from retrieval.encoders.tokenizer import ModelTokenizer
from retrieval.errors import EncoderError, EncoderUnavailableError

logger = logging.getLogger(__name__)

_MAX_ANSWER_BYTES: Final = 64 * 2**20
_FIRST_DELAY_SECONDS: Final = 0.5
_MAX_DELAY_SECONDS: Final = 30.0
_MAX_WAIT_SECONDS: Final = 120.0  #: No retry if the service requests a longer wait.
_REFUSED: Final = frozenset({401, 403})
_MINUTE: Final = 60.0
_PAUSED: Final = "The embedding service failed several times in a row. It is paused for 30 seconds."
_BURST_SECONDS: Final = 10.0  #: Burst after a pause, in seconds of the rate.


class RateLimit:
    """A token bucket that fills at `per_minute` and has a capacity of ten seconds; thread-safe.

    A caller may take more than the bucket contains: then it and all later callers wait until the bucket is refilled.
    0 per minute means no limit. With a `name`, all processes with a shared store take from one bucket.
    """

    def __init__(self, per_minute: float, name: str = "", *, clock: Callable[[], float] = monotonic) -> None:
        self._rate = per_minute / _MINUTE
        self._capacity = self._rate * _BURST_SECONDS
        self._key = f"rate {name} {per_minute}"
        self._store: Store = (name and shared()) or MemoryStore(clock)

    def take(self, amount: float) -> float:
        """Take an amount and return the seconds to wait before using it."""

        def taken(value: list[float] | None, now: float) -> tuple[list[float], float]:
            available, at = value or (self._capacity, now)
            available = min(self._capacity, available + (now - at) * self._rate) - amount
            return [available, now], max(0.0, -available / self._rate)

        return self._store.update(self._key, taken) if self._rate else 0.0


class RemoteEncoder:
    """Encodes texts by a service; thread-safe.

    Requests for documents keep the service's rate limits and are retried after temporary failures. A query has one
    attempt and never waits; after three consecutive failures the service is not called for half a minute, so that an
    outage does not delay every search.
    """

    def __init__(
        self,
        service: EmbedService,
        tokenizer: ModelTokenizer,
        *,
        breaker: CircuitBreaker | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.service = service
        self.name = service.model  #: The model for documents.
        #: The weights of a service are unknown: its kind, and a different model for queries.
        self.weights = " ".join(filter(None, (service.kind, service.query_model)))
        self.dim = service.dim
        self.max_tokens = service.max_tokens  #: Of a sent text, in tokens of the local tokenizer.
        self.batching = Batching(service.batch_texts, service.calls)  #: One request per call.
        self.tokenizer = tokenizer
        self.tokenizer_file = str(tokenizer.path)
        at = f"{service.address} {service.model} {service.query_model}"
        self._breaker = breaker or CircuitBreaker(at, refusal=partial(EncoderUnavailableError, _PAUSED))
        self._sleep = sleep
        self._requests = RateLimit(service.requests_per_minute, f"{at} requests")
        self._tokens = RateLimit(service.tokens_per_minute, f"{at} tokens")
        self._client = BoundedClient(service.api_key, max_answer_bytes=_MAX_ANSWER_BYTES)

    def encode_query(self, text: str) -> NDArray[np.float32]:
        """Return a query's unit vector, shape (dim,); raise EncoderUnavailableError for an outage, EncoderError."""
        (truncated,), (tokens,) = self._truncate([text])
        self._requests.take(1)
        self._tokens.take(tokens)
        timeout_seconds = self.service.query_timeout_seconds
        vectors: NDArray[np.float32] = self._breaker.call(
            lambda: self._request([truncated], is_query=True, timeout_seconds=timeout_seconds)
        )
        query: NDArray[np.float32] = vectors[0]
        return query

    def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors, shape (len(texts), dim), in input order.

        Texts beyond max_tokens are truncated. Raises EncoderUnavailableError if the last attempt failed, EncoderError
        for a refusal or an invalid response.
        """
        truncated, tokens = self._truncate(texts)
        vectors = np.zeros((len(texts), self.dim), np.float32)
        for start, end in requests(tokens, max_texts=self.service.batch_texts, max_tokens=self.service.batch_tokens):
            vectors[start:end] = self._request_with_retries(truncated[start:end], tokens=sum(tokens[start:end]))
        return vectors

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text by the local tokenizer, without truncation."""
        return self.tokenizer.count(texts)

    def token_spans(self, text: str) -> list[tuple[int, int]]:
        """Return the (start, end) character span of every token by the local tokenizer, without truncation."""
        return self.tokenizer.spans(text)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _truncate(self, texts: Sequence[str]) -> tuple[list[str], list[int]]:
        """Return the texts truncated to max_tokens, and their numbers of tokens; services refuse empty texts."""
        counts = self.tokenizer.count(texts)
        truncated = [
            text if count <= self.max_tokens else text[: self.tokenizer.spans(text)[self.max_tokens - 1][1]]
            for text, count in zip(texts, counts, strict=True)
        ]
        return [text or " " for text in truncated], [min(count, self.max_tokens) for count in counts]

    def _request_with_retries(self, texts: Sequence[str], *, tokens: int) -> NDArray[np.float32]:
        for attempt in range(1, self.service.attempts + 1):
            self._sleep(max(self._requests.take(1), self._tokens.take(tokens)))
            try:
                return self._request(texts, is_query=False, timeout_seconds=self.service.timeout_seconds)
            except EncoderUnavailableError as error:
                cause = error.__cause__
                requested = cause.retry_after_seconds if isinstance(cause, ServiceFaultError) else None
                wait = delay_seconds(attempt, requested=requested)
                if attempt == self.service.attempts or wait > _MAX_WAIT_SECONDS:
                    raise
                logger.info("embedding.retried kind=%s attempt=%d seconds=%.1f", self.service.kind, attempt, wait)
                self._sleep(wait)
        raise EncoderUnavailableError

    def _request(self, texts: Sequence[str], *, is_query: bool, timeout_seconds: float) -> NDArray[np.float32]:
        body = json.dumps(self.service.body(texts, is_query=is_query)).encode()
        try:
            content = self._client.post(self.service.address, body, timeout_seconds=timeout_seconds)
        except ServiceFaultError as error:
            logger.warning("embedding.request_failed kind=%s reason=%s", self.service.kind, error)
            if error.status_received in _REFUSED:
                status = error.status_received
                raise EncoderError(f"The embedding service refuses the API key (status {status}).") from error
            kind = EncoderUnavailableError if error.is_retryable else EncoderError
            raise kind(f"The embedding service {error}.") from error
        return self.service.vectors(parsed(content, invalid=invalid_response), count=len(texts))


def requests(tokens: Sequence[int], *, max_texts: int, max_tokens: int) -> list[tuple[int, int]]:
    """Return (first, after last) of each request for texts of these numbers of tokens, in order; at least one text."""
    found: list[tuple[int, int]] = []
    start = total = 0
    for place, count in enumerate(tokens):
        if place > start and (place - start == max_texts or total + count > max_tokens):
            found.append((start, place))
            start, total = place, 0
        total += count
    return [*found, (start, len(tokens))] if tokens else []


def delay_seconds(attempt: int, *, requested: float | None) -> float:
    """Return the wait after an attempt, counted from 1: the time that the service requested, plus jitter.

    Without a request, a random time up to 0.5 s, doubled with each attempt, at most 30 s ("full jitter").
    """
    bound = min(_MAX_DELAY_SECONDS, _FIRST_DELAY_SECONDS * 2 ** (attempt - 1))
    jitter = random.uniform(0, bound)  # noqa: S311 -- spreads retries, guards nothing
    return jitter if requested is None else requested + min(jitter, _FIRST_DELAY_SECONDS)
