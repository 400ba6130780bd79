"""An embedding model behind HTTP."""

import json
import logging
import random
import time
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from retrieval.encoders.bounded_http import BoundedClient, ServiceFaultError
from retrieval.encoders.breaker import CircuitBreaker
from retrieval.encoders.embed_services import EmbedService, garbage
from retrieval.encoders.protocol import Batching
from retrieval.encoders.rate_limit import RateLimit
from retrieval.encoders.tokens import ModelTokenizer
from retrieval.errors import EncoderError, EncoderUnavailableError

logger = logging.getLogger(__name__)

_MAX_ANSWER_BYTES: Final = 64 * 2**20
_FIRST_DELAY_SECONDS: Final = 0.5
_MAX_DELAY_SECONDS: Final = 30.0
#: A service that asks for more than that is not waited for.
_MAX_WAIT_SECONDS: Final = 120.0
_REFUSED: Final = frozenset({401, 403})


class RemoteEncoder:
    """Asks a service for vectors. Safe to call from several threads.

    Documents are asked for again after failures that pass, and within the service's rates. A query has one try and
    waits for nothing; after three failures in a row the service is left alone for half a minute, so that a dead one
    does not cost every search its time.
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
        self._tokenizer = tokenizer
        self._breaker = breaker or CircuitBreaker(refusal=_left_alone)
        self._sleep = sleep
        self._requests = RateLimit(service.requests_per_minute)
        self._tokens = RateLimit(service.tokens_per_minute)
        headers = {"authorization": f"Bearer {service.api_key}"} if service.api_key else {}
        self._client = BoundedClient(headers, max_answer_bytes=_MAX_ANSWER_BYTES)

    @property
    def name(self) -> str:
        """The name of the model for documents."""
        return self.service.model

    @property
    def weights(self) -> str:
        """The kind of the service, and the model for queries where it is another: a service shows no weights."""
        return " ".join(part for part in (self.service.kind, self.service.query_model) if part)

    @property
    def dim(self) -> int:
        """The number of components of a vector."""
        return self.service.dim

    @property
    def tokenizer_file(self) -> str:
        """The path of its tokenizer's file, which counts tokens as it does."""
        return str(self._tokenizer.path)

    @property
    def max_tokens(self) -> int:
        """The longest text that is sent, in tokens of the local tokenizer."""
        return self.service.max_tokens

    @property
    def batching(self) -> Batching:
        """One request a call."""
        return Batching(self.service.batch_texts, self.service.calls)

    def encode_query(self, text: str) -> NDArray[np.float32]:
        """Return the unit vector of a query, shape (dim,).

        Raises EncoderUnavailableError when the service cannot be reached, is too slow or is left alone, EncoderError
        when it refuses or answers nonsense.
        """
        (cut,), (tokens,) = self._cut([text])
        self._requests.take(1)
        self._tokens.take(tokens)
        timeout_seconds = self.service.query_timeout_seconds
        vectors: NDArray[np.float32] = self._breaker.call(
            lambda: self._ask([cut], is_query=True, timeout_seconds=timeout_seconds)
        )
        query: NDArray[np.float32] = vectors[0]
        return query

    def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors, shape (len(texts), dim), in input order.

        Texts beyond max_tokens are cut at the end. Raises EncoderUnavailableError when the service still failed at the
        last try, EncoderError when it refuses or answers nonsense.
        """
        cut, tokens = self._cut(texts)
        vectors = np.zeros((len(texts), self.dim), np.float32)
        for start, end in requests(tokens, max_texts=self.service.batch_texts, max_tokens=self.service.batch_tokens):
            vectors[start:end] = self._ask_again(cut[start:end], tokens=sum(tokens[start:end]))
        return vectors

    @property
    def tokenizer(self) -> ModelTokenizer:
        """The local tokenizer, which asks nobody."""
        return self._tokenizer

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text by the local tokenizer, nothing cut."""
        return self._tokenizer.count(texts)

    def token_spans(self, text: str) -> list[tuple[int, int]]:
        """Return the (start, end) character span of every token by the local tokenizer, nothing cut."""
        return self._tokenizer.spans(text)

    def close(self) -> None:
        """End its connections."""
        self._client.close()

    def _cut(self, texts: Sequence[str]) -> tuple[list[str], list[int]]:
        """Return the texts, each without what is beyond max_tokens, and their tokens; services refuse empty texts."""
        counts = self._tokenizer.count(texts)
        cut = [
            text if count <= self.max_tokens else self._beginning(text)
            for text, count in zip(texts, counts, strict=True)
        ]
        return [text or " " for text in cut], [min(count, self.max_tokens) for count in counts]

    def _beginning(self, text: str) -> str:
        return text[: self._tokenizer.spans(text)[self.max_tokens - 1][1]]

    def _ask_again(self, texts: Sequence[str], *, tokens: int) -> NDArray[np.float32]:
        """Return the texts' vectors, asking again after failures that pass."""
        for attempt in range(1, self.service.attempts + 1):
            self._sleep(max(self._requests.take(1), self._tokens.take(tokens)))
            try:
                return self._ask(texts, is_query=False, timeout_seconds=self.service.timeout_seconds)
            except EncoderUnavailableError as error:
                wait = delay_seconds(attempt, asked=_asked(error))
                if attempt == self.service.attempts or wait > _MAX_WAIT_SECONDS:
                    raise
                logger.info("embed.again kind=%s attempt=%d seconds=%.1f", self.service.kind, attempt, wait)
                self._sleep(wait)
        raise EncoderUnavailableError

    def _ask(self, texts: Sequence[str], *, is_query: bool, timeout_seconds: float) -> NDArray[np.float32]:
        body = json.dumps(self.service.body(texts, is_query=is_query)).encode()
        try:
            content = self._client.post(self.service.address, body, timeout_seconds=timeout_seconds)
        except ServiceFaultError as error:
            logger.warning("embed.failed kind=%s reason=%s", self.service.kind, error)
            raise _fault(error) from error
        return self.service.vectors(_parsed(content), count=len(texts))


def requests(tokens: Sequence[int], *, max_texts: int, max_tokens: int) -> list[tuple[int, int]]:
    """Return (first, after last) of each request for texts of so many tokens, in order; a long text goes alone."""
    found: list[tuple[int, int]] = []
    start = held = 0
    for place, count in enumerate(tokens):
        if place > start and (place - start == max_texts or held + count > max_tokens):
            found.append((start, place))
            start, held = place, 0
        held += count
    return [*found, (start, len(tokens))] if tokens else []


def delay_seconds(attempt: int, *, asked: float | None) -> float:
    """Return how long to wait after the attempt of that number, from 1: what the service asked for, plus jitter.

    Where it asked for nothing, a random time below 0.5 s doubled with each attempt, at most 30 s ("full jitter").
    """
    bound = min(_MAX_DELAY_SECONDS, _FIRST_DELAY_SECONDS * 2 ** (attempt - 1))
    jitter = random.uniform(0, bound)  # noqa: S311 -- spreads retries, guards nothing
    return jitter if asked is None else asked + min(jitter, _FIRST_DELAY_SECONDS)


def _asked(error: EncoderUnavailableError) -> float | None:
    cause = error.__cause__
    return cause.retry_after_seconds if isinstance(cause, ServiceFaultError) else None


def _fault(error: ServiceFaultError) -> EncoderError:
    if error.status_received in _REFUSED:
        return EncoderError(f"The embedding service refuses the API key (status {error.status_received}).")
    message = f"The embedding service {error}."
    return EncoderUnavailableError(message) if error.may_pass else EncoderError(message)


def _left_alone() -> EncoderError:
    return EncoderUnavailableError("The embedding service failed several times in a row and is left alone for a while.")


def _parsed(content: bytes) -> object:
    try:
        parsed: object = json.loads(content)
    except (ValueError, RecursionError):
        # Without its cause, whose message repeats what was received.
        raise garbage("it is no JSON") from None
    return parsed
