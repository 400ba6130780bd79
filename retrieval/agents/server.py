"""A stateless MCP server over streamable HTTP, one for each request. It takes as long to load as all pages together."""

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import anyio
from asgiref.sync import sync_to_async
from mcp.server import Server, ServerRequestContext
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)

from corecube.errors import CoreCubeError
from corecube.version import VERSION
from retrieval.agents.tools import TOOLS, Caller, call

logger = logging.getLogger(__name__)

_INSTRUCTIONS: Final = (
    "Governed search over the documents that the API key's user may see, and a private memory of that user. "
    "Cite sources by title and url."
)
_READS: Final = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_ADDS: Final = ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)


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


async def serve(body: bytes, headers: Mapping[str, str], caller: Caller) -> Reply:
    """Return the response to a caller's POST.

    Each request gets a separate server for its caller, so that requests share no state and any process can answer them.
    """
    server: Server[Any] = Server(
        "corecube",
        title="CoreCube",
        version=VERSION,
        instructions=_INSTRUCTIONS,
        on_list_tools=_list_tools,
        on_call_tool=partial(_call_tool, caller),
    )
    manager = StreamableHTTPSessionManager(server, json_response=True, stateless=True)
    reply, waiting = Reply(), [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> dict[str, Any]:
        if not waiting:
            await anyio.sleep_forever()
        return waiting.pop()

    async with manager.run():
        await manager.asgi_app(_scope(headers), receive, reply.take)
    return reply


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


async def _list_tools(_: ServerRequestContext[Any], __: PaginatedRequestParams | None) -> ListToolsResult:
    return ListToolsResult(
        tools=[
            Tool(
                name=name,
                title=tool.title,
                description=tool.description,
                input_schema=tool.reads.model_json_schema(),
                output_schema=tool.returns.model_json_schema(mode="serialization"),
                annotations=_READS if tool.is_read_only else _ADDS,
            )
            for name, tool in TOOLS.items()
        ]
    )


async def _call_tool(caller: Caller, _: ServerRequestContext[Any], params: CallToolRequestParams) -> CallToolResult:
    return await sync_to_async(_result)(params.name, params.arguments or {}, caller)


def _result(name: str, arguments: Mapping[str, Any], caller: Caller) -> CallToolResult:
    """Return a tool's result; the agent gets the message of a known error, and of other errors no details."""
    try:
        answer = call(name, arguments, caller).model_dump(mode="json")
    except CoreCubeError as error:
        if error.status >= 500:  # noqa: PLR2004 -- HTTP
            logger.exception("agent.failed tool=%s code=%s", name[:40], error.code)
        return _failure(str(error))
    except Exception:
        logger.exception("agent.failed tool=%s", name[:40])
        return _failure(str(CoreCubeError()))
    text = json.dumps(answer, ensure_ascii=False)
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=answer)


def _failure(message: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=message)], is_error=True)
