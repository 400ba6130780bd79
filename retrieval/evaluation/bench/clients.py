"""Clients that send requests to a web server, a number of them at any time."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from time import perf_counter
from typing import Any, Final, TypeVar

import httpx2

_SEARCH_SECONDS: Final = 60.0  #: Longer than the maximum waiting time and duration of a search.
_T = TypeVar("_T")


async def run_concurrently(
    url: str,
    secret: str,
    work: Callable[[httpx2.AsyncClient, int], Awaitable[_T]],
    *,
    count: int,
    at_once: int,
    timeout_seconds: float,
) -> list[_T]:
    """Do work for the numbers 0 to `count` - 1, `at_once` at any time; return the results as they finish."""
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


async def send_searches(
    url: str, secret: str, bodies: Sequence[Mapping[str, Any]], *, at_once: int
) -> list[tuple[str, float]]:
    """Send searches, `at_once` at any time; return each one's status, or error's class, and milliseconds."""

    async def send(client: httpx2.AsyncClient, number: int) -> tuple[str, float]:
        started = perf_counter()
        try:
            answer = await client.post("/api/v1/search", json=bodies[number])
            outcome = str(answer.status_code)
        except httpx2.HTTPError as error:
            outcome = type(error).__name__
        return outcome, (perf_counter() - started) * 1000

    return await run_concurrently(
        url, secret, send, count=len(bodies), at_once=at_once, timeout_seconds=_SEARCH_SECONDS
    )
