"""Many readers of streamed answers at once, as programs with a key are. No Django."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, Final

import httpx2

_PATIENCE_SECONDS: Final = 120.0
_DATA: Final = "data: "
_END: Final = "data: [DONE]"


@dataclass(frozen=True, slots=True)
class Reading:
    """How one streamed answer was read."""

    #: From sending the request to the first word of the answer, and to the end; 0 for what never came.
    first_ms: float = 0.0
    total_ms: float = 0.0
    #: Empty for an answer that was read to its end.
    error: str = ""
    #: What it was made without, by code.
    degraded: tuple[str, ...] = ()
    #: Whether it is its reader's first, for which all readers ask in the same moment.
    is_joining: bool = False


async def read_all(
    url: str, secret: str, questions: Sequence[str], *, count: int, at_once: int, done: Callable[[], None]
) -> list[Reading]:
    """Ask so many questions, in turn, `at_once` of them at any time; each reader asks again as soon as it is answered.

    `url` is the server's address. `done` is called after each answer.
    """
    waiting = iter(range(count))
    readings: list[Reading] = []
    limits = httpx2.Limits(max_connections=at_once, max_keepalive_connections=at_once)
    async with httpx2.AsyncClient(
        base_url=url,
        headers={"Authorization": f"Bearer {secret}"},
        timeout=_PATIENCE_SECONDS,
        limits=limits,
        trust_env=False,
    ) as client:

        async def reader() -> None:
            for number in waiting:
                reading = await _read(client, questions[number % len(questions)])
                readings.append(replace(reading, is_joining=number < at_once))
                done()

        await asyncio.gather(*(reader() for _ in range(min(at_once, count))))
    return readings


async def _read(client: httpx2.AsyncClient, question: str) -> Reading:
    body = {"model": "corecube", "messages": [{"role": "user", "content": question}], "stream": True}
    began, first, degraded = perf_counter(), 0.0, ()
    try:
        async with client.stream("POST", "/v1/chat/completions", json=body) as answer:
            if answer.status_code != httpx2.codes.OK:
                return Reading(error=f"status {answer.status_code}")
            async for line in answer.aiter_lines():
                if line == _END:
                    return Reading(first, _since(began), degraded=degraded)
                chunk = _chunk(line)
                if "error" in chunk:
                    return Reading(first, error=chunk["error"]["code"])
                first = first or (_since(began) if _has_words(chunk) else 0.0)
                degraded = tuple(chunk.get("corecube", {}).get("degraded", degraded))
    except httpx2.HTTPError as error:
        return Reading(first, error=type(error).__name__)
    return Reading(first, error="cut off")


def _chunk(line: str) -> dict[str, Any]:
    """Return what an event says; nothing for a comment or a blank line."""
    said: dict[str, Any] = json.loads(line.removeprefix(_DATA)) if line.startswith(_DATA) else {}
    return said


def _has_words(chunk: dict[str, Any]) -> bool:
    return any(choice["delta"].get("content") for choice in chunk.get("choices", ()))


def _since(began: float) -> float:
    return (perf_counter() - began) * 1000
