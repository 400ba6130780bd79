"""One HTTP exchange with the MCP server: a JSON response, or server-sent events while a call runs."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from retrieval.agents.server import server_for
from retrieval.agents.tools import Caller


@dataclass(slots=True)
class Reply:
    """An HTTP response, built from ASGI messages."""

    status: int = 500
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytearray = field(default_factory=bytearray)

    async def take(self, message: Mapping[str, Any]) -> None:
        """Add an ASGI message."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in message["headers"]]
        else:
            self.body += message.get("body", b"")


async def answered(body: bytes, headers: Mapping[str, str], caller: Caller) -> Reply:
    """Return the response to a caller's POST in JSON. Each request gets a separate server, so none shares state."""
    reply = Reply()
    await _exchange(body, headers, caller, reply.take, as_json=True)
    return reply


async def streamed(body: bytes, headers: Mapping[str, str], caller: Caller) -> AsyncGenerator[bytes]:
    """Yield the response as server-sent events; an answer in JSON is the only one. Ends the call if it is closed."""
    messages: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()
    running = asyncio.create_task(_exchange(body, headers, caller, messages.put, as_json=False))
    running.add_done_callback(lambda _: messages.put_nowait({"type": "end"}))
    try:
        is_stream, answer = False, Reply()
        while (message := await messages.get())["type"] != "end":
            await answer.take(message)
            if message["type"] == "http.response.start":
                is_stream = ("content-type", "text/event-stream") in [
                    (it[0], it[1].partition(";")[0]) for it in answer.headers
                ]
            elif is_stream and message.get("body"):
                yield message["body"]
        if not is_stream:
            yield b"event: message\r\ndata: " + bytes(answer.body) + b"\r\n\r\n"
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def _exchange(body: bytes, headers: Mapping[str, str], caller: Caller, send: Any, *, as_json: bool) -> None:  # noqa: ANN401 -- ASGI
    manager = StreamableHTTPSessionManager(server_for(caller), json_response=as_json, stateless=True)
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> dict[str, Any]:
        if not waiting:
            await anyio.sleep_forever()
        return waiting.pop()

    async with manager.run():
        await manager.asgi_app(_scope(headers), receive, send)


def _scope(headers: Mapping[str, str]) -> dict[str, Any]:
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/mcp",
        "raw_path": b"/mcp",
        "query_string": b"",
        "headers": [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()],
    }
