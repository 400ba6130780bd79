"""The prompts: what users choose in their client, filled with their words."""

from string import Template
from typing import Any, Final

from mcp import MCPError
from mcp.server import ServerRequestContext
from mcp_types import (
    INVALID_PARAMS,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    PaginatedRequestParams,
    Prompt,
    PromptArgument,
    PromptMessage,
    TextContent,
)

from corecube.data import read_toml

_PROMPTS: Final = read_toml("retrieval.agents", "prompts.toml")
_MAX_ARGUMENT: Final = 2000  #: Maximum length of an argument in characters.


async def list_prompts(_: ServerRequestContext[Any], __: PaginatedRequestParams | None) -> ListPromptsResult:
    """Return all prompts."""
    return ListPromptsResult(
        prompts=[
            Prompt(
                name=name,
                title=it["title"],
                description=it["description"],
                arguments=[
                    PromptArgument(name=argument, description=text, required=True)
                    for argument, text in it["arguments"].items()
                ],
            )
            for name, it in _PROMPTS.items()
        ]
    )


async def get_prompt(_: ServerRequestContext[Any], params: GetPromptRequestParams) -> GetPromptResult:
    """Return the message of a prompt; raise MCPError for an unknown one, or for other arguments than it has."""
    prompt, given = _PROMPTS.get(params.name), params.arguments or {}
    if prompt is None:
        raise MCPError(INVALID_PARAMS, "There is no prompt with that name.")
    if given.keys() != prompt["arguments"].keys() or not all(0 < len(it) <= _MAX_ARGUMENT for it in given.values()):
        names = ", ".join(prompt["arguments"])
        raise MCPError(INVALID_PARAMS, f"The arguments are {names}, each with 1 to {_MAX_ARGUMENT} characters.")
    text = Template(prompt["text"]).substitute(given)
    message = PromptMessage(role="user", content=TextContent(type="text", text=text))
    return GetPromptResult(description=prompt["description"], messages=[message])
