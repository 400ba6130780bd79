"""Trying a language model: one short answer, how soon it came, and what else its service offers."""

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

_ASKED: Final = ({"role": "user", "content": "Answer with the one word: ready"},)
_MAX_MODELS: Final = 200
_MAX_SAID: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What came of it."""

    #: In plain words; empty when it answered.
    problem: str = ""
    #: The same as the service's client raised it.
    error: AnswerError | None = None
    said: str = ""
    first_token_seconds: float | None = None
    seconds: float = 0.0
    #: None where the service does not say.
    usage: TokenUsage | None = None
    #: What the service calls its models; empty where it does not list them.
    models: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether it answered."""
        return not self.problem


def try_model(service: ModelService) -> Trial:
    """Return what a service answers; what goes wrong is told in it."""
    return async_to_sync(_trial)(service)


def probe(service: ModelService) -> AnswerError | None:
    """Return what keeps a service from listing its models, None where it lists them; no answer is asked for."""
    return async_to_sync(_probed)(service)


async def _probed(service: ModelService) -> AnswerError | None:
    client = ModelClient(service)
    try:
        await client.models()
    except AnswerError as error:
        return error
    finally:
        client.close()
    return None


async def _trial(service: ModelService) -> Trial:
    client = ModelClient(service)
    try:
        trial, models = await asyncio.gather(_asked(client), _listed(client))
    finally:
        client.close()
    return replace(trial, models=models)


async def _asked(client: ModelClient) -> Trial:
    started = perf_counter()
    first: float | None = None
    said, usage = "", None
    try:
        async with aclosing(client.stream(_ASKED)) as pieces:
            async for piece in pieces:
                first = perf_counter() - started if first is None and piece.text else first
                said, usage = said + piece.text, piece.usage or usage
    except AnswerError as error:
        return Trial(problem=str(error), error=error, seconds=perf_counter() - started)
    return Trial(
        said=said.strip()[:_MAX_SAID], first_token_seconds=first, seconds=perf_counter() - started, usage=usage
    )


async def _listed(client: ModelClient) -> tuple[str, ...]:
    """Return the names of the models; not every service lists them, and that is no fault."""
    try:
        return (await client.models())[:_MAX_MODELS]
    except AnswerError:
        return ()
