"""A trial of a language model: one short answer with its times, and the other models of the service."""

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Final

from asgiref.sync import async_to_sync

from retrieval.errors import AnswerError
from retrieval.llm.language_model import ModelClient
from retrieval.llm.service import ModelService
from retrieval.llm.types import TokenUsage

_MESSAGES: Final = ({"role": "user", "content": "Answer with the one word: ready"},)
_MAX_MODELS: Final = 200
_MAX_ANSWER_LENGTH: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """The result of a trial."""

    problem: str = ""
    error: AnswerError | None = None
    answer: str = ""
    first_token_seconds: float | None = None
    seconds: float = 0.0
    usage: TokenUsage | None = None  #: None if the service does not report it.
    models: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether it answered."""
        return not self.problem


def try_model(service: ModelService) -> Trial:
    """Return the result of a trial; it never raises AnswerError."""
    return async_to_sync(_trial)(service)


def models_of(service: ModelService) -> tuple[str, ...]:
    """Return the names of a service's models; raise AnswerError."""
    return async_to_sync(_listed)(service)


def probe(service: ModelService) -> AnswerError | None:
    """Return the error of listing a service's models, None without one; no answer is requested."""
    try:
        models_of(service)
    except AnswerError as error:
        return error
    return None


async def _listed(service: ModelService) -> tuple[str, ...]:
    client = ModelClient(service)
    try:
        return (await client.models())[:_MAX_MODELS]
    finally:
        client.close()


async def _trial(service: ModelService) -> Trial:
    client = ModelClient(service)
    try:
        trial, models = await asyncio.gather(_answer(client), _models(client))
    finally:
        client.close()
    return replace(trial, models=models)


async def _answer(client: ModelClient) -> Trial:
    started = perf_counter()
    first: float | None = None
    answer, usage = "", None
    try:
        async with aclosing(client.stream(_MESSAGES)) as pieces:
            async for piece in pieces:
                first = perf_counter() - started if first is None and piece.text else first
                answer, usage = answer + piece.text, piece.usage or usage
    except AnswerError as error:
        return Trial(problem=str(error), error=error, seconds=perf_counter() - started)
    return Trial(
        answer=answer.strip()[:_MAX_ANSWER_LENGTH],
        first_token_seconds=first,
        seconds=perf_counter() - started,
        usage=usage,
    )


async def _models(client: ModelClient) -> tuple[str, ...]:
    try:
        return (await client.models())[:_MAX_MODELS]
    except AnswerError:
        return ()
