"""Client of a language model over OpenAI's protocol, and its errors as CoreCube's.

No message of an error contains anything that was sent or received: a service may echo its prompt or its key. The first
client loads the SDK: it takes a quarter of a worker's start, and most processes never call a language model.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from http import HTTPStatus
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from corecube import tracing
from corecube.data import read_toml
from retrieval import errors
from retrieval.encoders.breaker import CircuitBreaker
from retrieval.llm.options import ignored
from retrieval.llm.service import Api, Dialect, ModelService
from retrieval.llm.streams import BackgroundLoop
from retrieval.llm.transport import TimeLimits, http_client, time_limits, timeouts
from retrieval.llm.types import NO_OPTIONS, Cut, Message, Options, Piece, TokenUsage

if TYPE_CHECKING:
    import openai

logger = logging.getLogger(__name__)

_FIRST_SERVER_FAULT: Final = 500
_REASONS: Final = read_toml("retrieval.llm", "messages.toml")["statuses"]
_TEMPORARY: Final = frozenset({408, 409, 425})
#: Statuses for a filtered or too long prompt; another prompt may succeed.
_PROMPT_ERRORS: Final = frozenset({400, 413, 422})
_LOOP: Final = BackgroundLoop("language-models")
#: Errors that do not count as failures of the service.
_EXCUSED: Final = (errors.AnswerRefusedError, errors.AnswerRateLimitedError)


def _answer_error(name: str, error: Exception) -> errors.AnswerError:
    import openai  # noqa: PLC0415 -- loaded already

    if isinstance(error, errors.AnswerError):
        return error
    if isinstance(error, openai.APITimeoutError | TimeoutError):
        return errors.AnswerTimeoutError(f"{name} did not answer in time.")
    if isinstance(error, openai.APIStatusError):
        return _status_error(name, error.status_code)
    if isinstance(error, openai.APIConnectionError):
        # Only the type of the cause.
        cause = type(error.__cause__).__name__ if error.__cause__ else "no connection"
        return errors.AnswerUnavailableError(f"{name} cannot be reached or closed the connection ({cause}).")
    if isinstance(error, openai.APIError) and not isinstance(error, openai.APIResponseValidationError):
        return errors.AnswerUnavailableError(f"{name} failed during its answer.")
    return errors.AnswerGarbageError(f"The response of {name} is invalid ({type(error).__name__}).")


def _status_error(name: str, status: int) -> errors.AnswerError:
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return errors.AnswerRateLimitedError(f"{name} has reached its rate limit (status 429).")
    if status >= _FIRST_SERVER_FAULT or status in _TEMPORARY:
        return errors.AnswerUnavailableError(f"{name} failed (status {status}).")
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        return errors.AnswerRefusedError(
            f"{name} redirects to another address, which is not allowed (status {status})."
        )
    reason = _REASONS.get(str(status), "It refused the request.")
    kind = errors.AnswerRejectedError if status in _PROMPT_ERRORS else errors.AnswerRefusedError
    return kind(f"{name} cannot be used (status {status}). {reason}")


class ModelClient:
    """Streams one model's answers on shared connections; three failures in a row pause it for half a minute.

    With a `name`, they pause it in all processes with a shared store.
    """

    def __init__(self, service: ModelService, name: str = "", *, breaker: CircuitBreaker | None = None) -> None:
        self.service = service
        paused = f"{service.name} failed several times in a row. It is paused for 30 s."
        self._breaker = breaker or CircuitBreaker(name, refusal=partial(errors.AnswerBreakerOpenError, paused))
        self._dialect = Dialect()
        self._client: openai.AsyncOpenAI | None = None
        # The loop owns both.
        self._running = 0
        self._is_closed = False

    @property
    def is_paused(self) -> bool:
        """Whether it is paused after several consecutive failures."""
        return self._breaker.is_open

    async def stream(self, messages: Sequence[Message], options: Options = NO_OPTIONS) -> AsyncGenerator[Piece, None]:
        """Yield the answer to messages piece by piece, and last the usage that the service reports.

        A notice names the options that the service does not support. Raises AnswerUnavailableError,
        AnswerRefusedError, AnswerFormatError if it does not support the required format, or AnswerGarbageError; they
        contain nothing that was sent or received. Closing it ends the request.
        """
        async with aclosing(_LOOP.stream(lambda: self._guarded(messages, options))) as pieces:
            async for piece in pieces:
                yield piece

    async def models(self) -> tuple[str, ...]:
        """Return the names of the models that the service offers; raise AnswerError."""
        return await _LOOP.result(self._models())

    def close(self) -> None:
        """Close the connections once all running requests have ended."""
        _LOOP.submit(self._close_if_idle())

    async def _close_if_idle(self) -> None:
        self._is_closed = True
        if not self._running and self._client is not None:
            await self._client.close()
            self._client = None

    async def _guarded(self, messages: Sequence[Message], options: Options) -> AsyncGenerator[Piece, None]:
        started = perf_counter()
        self._running += 1
        try:
            with (
                tracing.span("language model", is_current=False, corecube__model=self.service.model),
                self._breaker.guarding(excused=_EXCUSED),
            ):
                async with aclosing(self._limited(messages, options)) as pieces:
                    async for piece in pieces:
                        yield piece
        except errors.AnswerError as error:
            values = (self.service.name, error.code, perf_counter() - started)
            logger.warning("language_model.request_failed model=%s code=%s seconds=%.1f", *values)
            raise
        finally:
            self._running -= 1
            if self._is_closed:
                await self._close_if_idle()

    async def _limited(self, messages: Sequence[Message], options: Options) -> AsyncGenerator[Piece, None]:
        service, loop = self.service, asyncio.get_running_loop()
        try:
            async with asyncio.timeout(service.timeout_seconds), asyncio.timeout(None) as silence:
                limits = TimeLimits(loop.time() + service.timeout_seconds, silence, service.silence_seconds)
                token = time_limits.set(limits)
                async with AsyncExitStack() as open_stream:
                    chunks = await self._opened(messages, options, open_stream)
                    time_limits.reset(token)
                    if unsupported := tuple(self._dialect.ignored(options)):
                        yield Piece(notice=ignored(unsupported, f"{service.name} does not support this."))
                    async for piece in self._pieces(chunks):
                        silence.reschedule(loop.time() + service.silence_seconds)
                        yield piece
        except Exception as error:  # noqa: BLE001 -- the SDK barely validates responses
            # Without its cause: its message may contain parts of the response.
            raise _answer_error(service.name, error) from None

    async def _opened(
        self, messages: Sequence[Message], options: Options, open_stream: AsyncExitStack
    ) -> AsyncIterator[object]:
        """Start an answer with request fields that the service accepts, and return its chunks."""
        import openai  # noqa: PLC0415 -- the first client loads it

        dialect = self._dialect
        while True:
            if options.is_json and not dialect.takes_format(options.response_format or {}):
                raise self._format_error()
            try:
                chunks: Any = await self._sdk.chat.completions.create(
                    **dialect.request(self.service, messages, options)
                )
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                simpler = dialect.without(str(error.body), options)
                if simpler is None and options.is_json:
                    # The service names no field.
                    raise self._format_error() from None
                if simpler is None:
                    raise
                if simpler.refused_formats != dialect.refused_formats:
                    self._dialect = replace(self._dialect, refused_formats=simpler.refused_formats)
                dialect = simpler
            else:
                self._dialect = dialect
                open_stream.push_async_callback(chunks.close)
                opened: AsyncIterator[object] = chunks
                return opened

    def can_answer_in(self, options: Options) -> bool:
        """Return whether the service may support the required format, as far as its earlier answers show."""
        return not options.is_json or self._dialect.takes_format(options.response_format or {})

    def _format_error(self) -> errors.AnswerFormatError:
        return errors.AnswerFormatError(f"{self.service.name} does not support this response_format.")

    async def _pieces(self, chunks: AsyncIterator[object]) -> AsyncGenerator[Piece, None]:
        reading = _Reading(self.service.name)
        async for chunk in chunks:
            yield Piece(reading.text_of(chunk))
        reading.require_complete()
        if reading.usage is not None or reading.cut is not None:
            yield Piece(usage=reading.usage, cut=reading.cut)

    async def _models(self) -> tuple[str, ...]:
        try:
            async with asyncio.timeout(self.service.silence_seconds):
                page = await self._sdk.models.list(extra_headers=self.service.list_headers)
                return tuple(sorted(str(model.id) for model in page.data))
        except Exception as error:  # noqa: BLE001 -- as above
            raise _answer_error(self.service.name, error) from None

    @property
    def _sdk(self) -> "openai.AsyncOpenAI":
        """The SDK's client; the loop that uses it creates it."""
        if self._client is None:
            self._client = _sdk_client(self.service)
        return self._client


@dataclass
class _Reading:
    name: str
    has_text: bool = False
    finish: str = ""
    usage: TokenUsage | None = field(default=None)

    def text_of(self, chunk: object) -> str:
        """Return the text of a chunk; raise AnswerGarbageError for an invalid chunk."""
        self.usage = _usage(getattr(chunk, "usage", None)) or self.usage
        choices = getattr(chunk, "choices", None)
        if not isinstance(choices, list):
            raise self._garbage("a chunk has no choices")
        if not choices:
            return ""
        text = getattr(getattr(choices[0], "delta", None), "content", None)
        if not isinstance(text, str | None):
            raise self._garbage("a piece is not text")
        finish = getattr(choices[0], "finish_reason", None)
        self.finish = finish if isinstance(finish, str) else self.finish
        self.has_text = self.has_text or bool(text and text.strip())
        return text or ""

    @property
    def cut(self) -> Cut | None:
        return Cut(self.finish) if self.finish in set(Cut) else None

    def require_complete(self) -> None:
        if self.cut is Cut.CONTENT_FILTER and not self.has_text:
            raise errors.AnswerRejectedError(f"{self.name}'s content filter blocked its answer.")
        if not self.has_text:
            raise self._garbage("it has no text")
        if not self.finish:
            raise errors.AnswerUnavailableError(f"{self.name} closed the connection before its answer was complete.")

    def _garbage(self, why: str) -> errors.AnswerGarbageError:
        return errors.AnswerGarbageError(f"The response of {self.name} is invalid: {why}.")


def _usage(given: object) -> TokenUsage | None:
    prompt, completion = (getattr(given, name, None) for name in ("prompt_tokens", "completion_tokens"))
    if not isinstance(prompt, int) or not isinstance(completion, int) or min(prompt, completion) < 0:
        return None
    return TokenUsage(prompt, completion)


def _sdk_client(service: ModelService) -> "openai.AsyncOpenAI":
    import openai  # noqa: PLC0415 -- the first client loads it

    shared: dict[str, Any] = {
        # The SDK requires a key; without one the header is removed.
        "api_key": service.api_key or "none",
        "max_retries": service.max_retries,
        "timeout": timeouts(service),
        "http_client": http_client(service),
    }
    if service.api is Api.AZURE:
        client: openai.AsyncOpenAI = openai.AsyncAzureOpenAI(
            azure_endpoint=service.base_url, api_version=service.api_version or "2024-10-21", **shared
        )
    else:
        client = openai.AsyncOpenAI(base_url=service.base_url, **shared)
    client.organization = client.project = None
    return client
