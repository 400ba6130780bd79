"""Concurrent API clients that read streamed answers. No Django."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, Final, TypeVar

import httpx2

_TIMEOUT_SECONDS: Final = 120.0
_DATA: Final = "data: "
_END: Final = "data: [DONE]"
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Reading:
    """The figures of one streamed answer."""

    #: Time from the request to the first token, and to the end; 0 if it did not arrive.
    first_ms: float = 0.0
    total_ms: float = 0.0
    #: Empty for a complete answer.
    error: str = ""
    degraded: tuple[str, ...] = ()
    #: Whether it is its reader's first, which all readers request at the same time.
    is_joining: bool = False


async def run_concurrently(
    url: str,
    secret: str,
    work: Callable[[httpx2.AsyncClient, int], Awaitable[_T]],
    *,
    count: int,
    at_once: int,
    timeout_seconds: float,
) -> list[_T]:
    """Do work for the numbers 0 to `count` - 1, `at_once` of them at any time, and return the results as they finish.

    `url` is the server's URL, `secret` the API key.
    """
    waiting = iter(range(count))
    results: list[_T] = []
    async with httpx2.AsyncClient(
        base_url=url,
        headers={"Authorization": f"Bearer {secret}"},
        timeout=timeout_seconds,
        limits=httpx2.Limits(max_connections=at_once, max_keepalive_connections=at_once),
        trust_env=False,
    ) as client:

        async def worker() -> None:
            for number in waiting:
                results.append(await work(client, number))  # noqa: PERF401 -- shared between the workers

        await asyncio.gather(*(worker() for _ in range(min(at_once, count))))
    return results


async def read_all(
    url: str, secret: str, questions: Sequence[str], *, count: int, at_once: int, done: Callable[[], None]
) -> list[Reading]:
    """Send `count` questions in turn, `at_once` of them at any time; each reader continues after an answer.

    `done` is called after each answer.
    """

    async def read(client: httpx2.AsyncClient, number: int) -> Reading:
        reading = await _read(client, questions[number % len(questions)])
        done()
        return replace(reading, is_joining=number < at_once)

    return await run_concurrently(url, secret, read, count=count, at_once=at_once, timeout_seconds=_TIMEOUT_SECONDS)


async def _read(client: httpx2.AsyncClient, question: str) -> Reading:
    body = {"model": "corecube", "messages": [{"role": "user", "content": question}], "stream": True}
    started, first, degraded = perf_counter(), 0.0, ()
    try:
        async with client.stream("POST", "/v1/chat/completions", json=body) as answer:
            if answer.status_code != httpx2.codes.OK:
                return Reading(error=f"status {answer.status_code}")
            async for line in answer.aiter_lines():
                if line == _END:
                    return Reading(first, _since(started), degraded=degraded)
                chunk = _chunk(line)
                if "error" in chunk:
                    return Reading(first, error=chunk["error"]["code"])
                has_text = any(choice["delta"].get("content") for choice in chunk.get("choices", ()))
                first = first or (_since(started) if has_text else 0.0)
                degraded = tuple(chunk.get("corecube", {}).get("degraded", degraded))
    except httpx2.HTTPError as error:
        return Reading(first, error=type(error).__name__)
    return Reading(first, error="cut off")


def _chunk(line: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(line.removeprefix(_DATA)) if line.startswith(_DATA) else {}
    return data


def _since(started: float) -> float:
    return (perf_counter() - started) * 1000
