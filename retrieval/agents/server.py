"""A stateless MCP server, one for each request. It takes as long to load as all pages together."""

import asyncio
import json
import logging
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from threading import Event
from typing import Any, Final

import anyio
from asgiref.sync import sync_to_async
from mcp.server import Server, ServerRequestContext
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    ServerCapabilities,
    TextContent,
    Tool,
    ToolAnnotations,
)

from corecube.errors import CoreCubeError
from corecube.version import VERSION
from retrieval.agents import following, prompts, resources
from retrieval.agents.tools import TOOLS, Caller, call
from retrieval.errors import SearchCancelledError

logger = logging.getLogger(__name__)

_INSTRUCTIONS: Final = (
    "Governed search over the documents that the user may see, and a private memory of that user. "
    "Cite sources by title and url."
)
_READS: Final = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_ADDS: Final = ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
_Context = ServerRequestContext[Any]
_Step = tuple[int, int, str]


class _Server(Server[Any]):
    """Offers updates of resources, and no changes of lists: tools and prompts are fixed, documents are searched."""

    def get_capabilities(self, *arguments: Any, **options: Any) -> ServerCapabilities:  # noqa: ANN401 -- the library's signature
        """Return what the server offers."""
        found = super().get_capabilities(*arguments, **options)
        for part in (found.tools, found.prompts, found.resources):
            if part:
                part.list_changed = False
        return found


def server_for(caller: Caller) -> Server[Any]:
    """Return a server that knows its caller."""
    return _Server(
        "corecube",
        title="CoreCube",
        version=VERSION,
        instructions=_INSTRUCTIONS,
        on_list_tools=_list_tools,
        on_call_tool=partial(_call_tool, caller),
        on_list_prompts=prompts.list_prompts,
        on_get_prompt=prompts.get_prompt,
        on_list_resources=partial(resources.list_resources, caller),
        on_list_resource_templates=resources.list_templates,
        on_read_resource=partial(resources.read_resource, caller),
        on_subscribe_resource=partial(following.subscribe, caller),
        on_unsubscribe_resource=partial(following.unsubscribe, caller),
        on_subscriptions_listen=partial(following.listen, caller),
    )


async def _list_tools(_: _Context, __: PaginatedRequestParams | None) -> ListToolsResult:
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


async def _call_tool(caller: Caller, context: _Context, params: CallToolRequestParams) -> CallToolResult:
    """Run a tool in the request's thread and report its progress; if the request ends, so does its search."""
    loop, steps, is_over = asyncio.get_running_loop(), asyncio.Queue[_Step | None](), Event()

    def watch(*step: Any) -> None:  # noqa: ANN401 -- a step
        if is_over.is_set():
            raise SearchCancelledError
        loop.call_soon_threadsafe(steps.put_nowait, step)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_report, context, steps)
        try:
            watched = replace(caller, watch=watch)
            result = await sync_to_async(_result)(params.name, params.arguments or {}, watched)
        finally:
            is_over.set()
            steps.put_nowait(None)
    return result


async def _report(context: _Context, steps: "asyncio.Queue[_Step | None]") -> None:
    """Report each step that is further than the one before, until None."""
    reached = -1
    while (step := await steps.get()) is not None:
        done, total, label = step
        if done > reached:
            reached = done
            await context.session.report_progress(done, total, label)


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
