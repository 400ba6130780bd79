"""A language model as a provider of answers. It keeps to the bindings itself, whatever it is handed. No Django."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from time import perf_counter
from typing import ClassVar

from corecube.errors import NotPermittedError
from retrieval.engine.token_counter import CountTokens
from retrieval.errors import AnswerError
from retrieval.llm import prompt
from retrieval.llm.language_model import ModelClient
from retrieval.llm.routing import Bindings, Id
from retrieval.llm.types import Cut, Message, Piece, Task, TokenUsage, Turn, Window

#: Notes what an answer took, and in how many seconds.
Spend = Callable[[TokenUsage, float], Awaitable[None]]
#: Hears how an answer ended: with an error, or None for one that was written.
Hear = Callable[[AnswerError | None], Awaitable[None]]


async def _unheard(_: AnswerError | None) -> None:
    """Note nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelProvider:
    """Lets one language model answer one request.

    What it used is noted once the answer ends, however it ends: said to the end, broken off or left by its reader.
    """

    id: Id
    name: str
    client: ModelClient
    window: Window
    bindings: Bindings
    count: CountTokens
    spend: Spend
    hear: Hear = _unheard

    is_extractive: ClassVar[bool] = False

    def refuses(self, text: str) -> bool:
        """Return whether an answer reports that the documents do not answer the question."""
        return text.lstrip().replace("\u2019", "'").startswith(prompt.REFUSAL)

    async def stream(self, task: Task) -> AsyncGenerator[Piece, None]:
        """Yield the answer, and last what it used.

        Turns that the model may not read are left out. Raises NotPermittedError, before anything is sent, for a
        passage that it may not read, and AnswerError.
        """
        if not self.bindings.allow(self.id, {passage.hit.chunk.connection_id for passage in task.passages}):
            raise NotPermittedError(f"{self.name} may not read these passages.")
        asked = prompt.messages(replace(task, history=tuple(filter(self.may_read, task.history))))
        spending = _Spending(asked, perf_counter())
        try:
            async with aclosing(self.client.stream(asked)) as pieces:
                async for piece in pieces:
                    spending.note(piece)
                    if piece.text:
                        yield piece
            await self.hear(None)
            yield Piece(usage=await self._used(spending), cut=spending.cut)
        except AnswerError as error:
            await self.hear(error)
            raise
        finally:
            if spending.text:
                await asyncio.shield(self._note(spending))

    def may_read(self, turn: Turn) -> bool:
        """Return whether an earlier answer may be shown to the model."""
        if turn.connections is None:
            return self.bindings.allow_anything(self.id)
        return self.bindings.allow(self.id, turn.connections)

    async def _note(self, spending: "_Spending") -> None:
        await self.spend(await self._used(spending), perf_counter() - spending.started)

    async def _used(self, spending: "_Spending") -> TokenUsage:
        """Return what the service says, or the tokens counted here where it does not."""
        if spending.usage is None:
            texts = [*(message["content"] for message in spending.asked), "".join(spending.text)]
            *read, written = await asyncio.to_thread(self.count, texts)
            spending.usage = TokenUsage(sum(read), written, is_estimated=True)
        return spending.usage


class _Spending:
    """What an answer takes while it is written."""

    def __init__(self, asked: Sequence[Message], started: float) -> None:
        self.asked = asked
        self.started = started
        self.text: list[str] = []
        self.usage: TokenUsage | None = None
        self.cut: Cut | None = None

    def note(self, piece: Piece) -> None:
        if piece.text:
            self.text.append(piece.text)
        self.usage = piece.usage or self.usage
        self.cut = piece.cut
