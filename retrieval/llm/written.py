"""A short text by a language model, within limits, its use noted."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from time import perf_counter
from typing import Any

from retrieval.llm.model_provider import ModelProvider
from retrieval.llm.types import Message, TokenUsage


async def written(
    provider: ModelProvider,
    messages: Sequence[Message],
    *,
    seconds: float,
    max_length: int,
    response_format: Mapping[str, Any] | None = None,
) -> str:
    """Return what the model writes, at most a little more than `longest` characters, and note what it used.

    `response_format` asks a service that knows it to write in a form. Raises TimeoutError after so many seconds, and
    AnswerError.
    """
    started, text, usage = perf_counter(), "", None
    try:
        async with asyncio.timeout(seconds), aclosing(provider.client.stream(messages, response_format)) as pieces:
            async for piece in pieces:
                text, usage = text + piece.text, piece.usage or usage
                if len(text) > max_length:
                    break
    finally:
        if text:
            counted = usage or await _counted(provider, messages, text)
            await asyncio.shield(provider.spend(counted, perf_counter() - started))
    return text


async def _counted(provider: ModelProvider, messages: Sequence[Message], text: str) -> TokenUsage:
    *read, answered = await asyncio.to_thread(provider.count, [*(it["content"] for it in messages), text])
    return TokenUsage(sum(read), answered, is_estimated=True)
