"""A language model as a provider of answers, which enforces the bindings itself."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, ClassVar

from corecube.errors import NotPermittedError
from retrieval.engine.types import CountTokens
from retrieval.errors import AnswerError
from retrieval.llm import prompt
from retrieval.llm.language_model import ModelClient
from retrieval.llm.options import Limits, limited
from retrieval.llm.routing import Bindings, Id
from retrieval.llm.types import Cut, Message, Options, Piece, Task, TokenUsage, Turn, Window

RecordUsage = Callable[[TokenUsage, float], Awaitable[None]]
#: Records the result of an answer: an error, or None for success.
RecordResult = Callable[[AnswerError | None], Awaitable[None]]


async def _ignore(_: AnswerError | None) -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelProvider:
    """Lets one language model answer one request, and records the usage even of failed and cancelled answers."""

    id: Id
    name: str
    client: ModelClient
    window: Window
    bindings: Bindings
    limits: Limits = field(default_factory=Limits)
    count: CountTokens
    record_usage: RecordUsage
    record_result: RecordResult = _ignore

    is_extractive: ClassVar[bool] = False

    def refuses(self, text: str) -> bool:
        """Return whether an answer reports that the documents do not answer the question."""
        return text.lstrip().replace("\u2019", "'").startswith(prompt.REFUSAL)

    async def stream(self, task: Task) -> AsyncGenerator[Piece, None]:
        """Yield the answer, and last its usage.

        Turns that the model may not read are left out. Raises NotPermittedError, before anything is sent, for a
        passage that it may not read, and AnswerError.
        """
        if not self.bindings.allow(self.id, {passage.hit.chunk.connection_id for passage in task.passages}):
            raise NotPermittedError(f"{self.name} may not read these passages.")
        options, notices = limited(task.options, self.limits, model=self.name)
        for notice in notices:
            yield Piece(notice=notice)
        task = replace(task, history=tuple(filter(self.may_read, task.history)), options=options)
        fence = prompt.fence_for(task)
        messages, unfenced = prompt.messages(task, fence=fence), prompt.FenceFilter(fence)
        generation = _Generation(messages)
        try:
            async with aclosing(self.client.stream(messages, options)) as pieces:
                async for piece in pieces:
                    generation.add(piece)
                    text = unfenced.add(piece.text)
                    if text or piece.notice:
                        yield replace(piece, text=text)
            if rest := unfenced.finish():
                yield Piece(rest)
            await self.record_result(None)
            yield Piece(usage=await self._usage(generation), cut=generation.cut)
        except AnswerError as error:
            await self.record_result(error)
            raise
        finally:
            if generation.text:
                await asyncio.shield(self._record(generation))

    def can_answer_in(self, options: Options) -> bool:
        """Return whether the model may support the required format, as far as its earlier answers show."""
        return self.client.can_answer_in(options)

    def may_read(self, turn: Turn) -> bool:
        """Return whether an earlier answer may be shown to the model."""
        if turn.connections is None:
            return self.bindings.allow_unknown_origin(self.id)
        return self.bindings.allow(self.id, turn.connections)

    async def _record(self, generation: "_Generation") -> None:
        await self.record_usage(await self._usage(generation), perf_counter() - generation.started)

    async def _usage(self, generation: "_Generation") -> TokenUsage:
        if generation.usage is None:
            texts = [*(message["content"] for message in generation.messages), "".join(generation.text)]
            *prompt_tokens, completion = await asyncio.to_thread(self.count, texts)
            generation.usage = TokenUsage(sum(prompt_tokens), completion, is_estimated=True)
        return generation.usage


class _Generation:
    def __init__(self, messages: Sequence[Message]) -> None:
        self.messages = messages
        self.started = perf_counter()
        self.text: list[str] = []
        self.usage: TokenUsage | None = None
        self.cut: Cut | None = None

    def add(self, piece: Piece) -> None:
        if piece.text:
            self.text.append(piece.text)
        self.usage = piece.usage or self.usage
        self.cut = piece.cut


async def generate_text(
    provider: ModelProvider,
    messages: Sequence[Message],
    *,
    seconds: float,
    max_length: int,
    response_format: Mapping[str, Any] | None = None,
) -> str:
    """Return a short text by a model, about `max_length` characters at most, and record its usage.

    `response_format` sets the format, for services that support it. Raises TimeoutError after `seconds`, and
    AnswerError.
    """
    generation, length = _Generation(messages), 0
    options = Options(response_format=response_format, is_format_optional=True)
    try:
        async with asyncio.timeout(seconds), aclosing(provider.client.stream(messages, options)) as pieces:
            async for piece in pieces:
                generation.add(piece)
                length += len(piece.text)
                if length > max_length:
                    break
    finally:
        if generation.text:
            await asyncio.shield(provider._record(generation))  # noqa: SLF001 -- the same module
    return "".join(generation.text)
