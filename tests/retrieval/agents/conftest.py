"""A session of the protocol's own client with a running server."""

import asyncio
from contextlib import asynccontextmanager

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client


@pytest.fixture
def session(server):
    """Return a function that runs a coroutine function with a client that has a key's secret."""

    @asynccontextmanager
    async def connected(secret, mode, **options):
        headers = {"Authorization": f"Bearer {secret}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=20) as http,
            Client(streamable_http_client(f"{server}/mcp", http_client=http), mode=mode, **options) as client,
        ):
            yield client

    def run(secret, steps, mode="auto", **options):
        async def with_client():
            async with connected(secret, mode, **options) as client:
                return await steps(client)

        return asyncio.run(with_client())

    return run
