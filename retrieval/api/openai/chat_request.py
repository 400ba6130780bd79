"""The chat request of the OpenAI-compatible API: question, history, preset, unsupported parameters.

Parameters of the answer are sent to the language model; all others are ignored and named in a notice.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Final

from pydantic import ConfigDict, Field, ValidationError

from corecube.access import Principal
from corecube.errors import InvalidRequestError, NotFoundError
from corecube.sanitise import storable
from retrieval.answers.rewrite import Rewriting
from retrieval.api.dify import FiltersIn, conditions_of
from retrieval.api.openai import client_tasks
from retrieval.api.schemas import Overrides, RequestBody, ScopeIn, StrictBody, TopK
from retrieval.api.search import scope_request
from retrieval.engine.metadata_conditions import Conditions
from retrieval.llm.types import Options, Turn
from retrieval.models import SearchRecord
from retrieval.presets.catalog import PRESETS
from retrieval.search.request import SearchRequest, checked_query

_MAX_STOPS: Final = 4
_SYSTEM_ROLES: Final = frozenset({"system", "developer"})
_LIMITED: Final = "Sent to the language model, within its limits."
#: Parameters whose absence changes no answer.
_NEUTRAL: Final = frozenset(
    {"user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key", "parallel_tool_calls"}
)
_TEXT_PARTS: Final = frozenset({"text", "input_text", "output_text"})
Stop = Annotated[str, Field(min_length=1, max_length=200)]
_MAX_IGNORED: Final = 20  #: Names of ignored parameters in a notice.
_MAX_TURNS: Final = 20  #: Only the last turns of a conversation are read.


class UnsupportedParameterError(InvalidRequestError, status=400, code="unsupported_parameter"):
    """A parameter requests a feature that this server does not support."""

    def __init__(self, param: str, message: str) -> None:
        self.param = param
        super().__init__(message)


class MissingMessageError(InvalidRequestError, code="missing_message"):
    """There is no user message to answer."""


class ModelNotFoundError(NotFoundError, code="model_not_found"):
    """No model with that name can be used with this API key."""

    def __init__(self, param: str = "model") -> None:
        self.param = param
        super().__init__()


class ContentPart(RequestBody):
    """A part of a message's content; only text is used."""

    type: str
    text: str | None = None


class MessageIn(RequestBody):
    """A message of the conversation."""

    role: str
    content: str | list[ContentPart] | None = None


class StreamOptions(RequestBody):
    """Options of a stream."""

    include_usage: bool = False


class ExtensionIn(StrictBody):
    """Parameters that only CoreCube has."""

    scope: ScopeIn = Field(default_factory=ScopeIn)
    preset: str | None = Field(default=None, description="Overrides `model`.")
    top_k: TopK = 10
    explain: bool = Field(default=False, description="Adds the response of /api/v1/search to the answer.")
    overrides: Overrides = Field(default_factory=dict)
    filters: Any = Field(
        default=None,
        description="Conditions on document metadata in Dify's format: `logical_operator` (and, or) and "
        "`conditions`, each with `name`, `comparison_operator` and `value`.",
    )


class JsonSchemaIn(RequestBody):
    """The schema of an answer."""

    name: str = Field(max_length=64)
    schema_: dict[str, Any] | None = Field(default=None, alias="schema")
    description: str | None = None
    strict: bool | None = None


class ResponseFormatIn(RequestBody):
    """The format of the answer."""

    type: str = Field(description="text, json_object or json_schema; JSON needs a language model that supports it.")
    json_schema: JsonSchemaIn | None = None


class ChatIn(RequestBody):
    """A question with the conversation before it; parameters that are not listed are ignored and named in a notice."""

    model_config = ConfigDict(extra="allow")

    model: str = Field(description="A preset's name, as GET /v1/models lists it.")
    messages: list[MessageIn]
    temperature: float | None = Field(default=None, ge=0, le=2, description=_LIMITED)
    max_tokens: int | None = Field(default=None, ge=1, description=_LIMITED)
    max_completion_tokens: int | None = Field(default=None, ge=1, description="The same as max_tokens.")
    stop: Stop | list[Stop] | None = Field(default=None, description="At most four texts that end the answer.")
    seed: int | None = Field(default=None, ge=-(2**63), lt=2**63)
    response_format: ResponseFormatIn | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: int | None = None
    tool_choice: Any = Field(default=None, description="none or auto: no tool is called.")
    function_call: Any = Field(default=None, description="The same as tool_choice, by its earlier name.")
    corecube: ExtensionIn = Field(default_factory=ExtensionIn)

    @property
    def wants_usage(self) -> bool:
        """Whether a stream ends with the token counts."""
        return self.stream_options is not None and self.stream_options.include_usage


def options_of(body: ChatIn) -> Options:
    """Return what a request sets for the language model; raise UnsupportedParameterError."""
    stop = [body.stop] if isinstance(body.stop, str) else body.stop or []
    if len(stop) > _MAX_STOPS:
        raise UnsupportedParameterError("stop", f"stop takes at most {_MAX_STOPS} texts.")
    system = [text for it in body.messages if it.role in _SYSTEM_ROLES and (text := _text_of(it))]
    return Options(
        system="\n\n".join(system),
        temperature=body.temperature,
        max_tokens=body.max_completion_tokens or body.max_tokens,
        stop=tuple(map(storable, stop)),
        seed=body.seed,
        response_format=_response_format(body.response_format),
    )


def ignored_parameters(body: ChatIn) -> tuple[str, ...]:
    """Return the parameters of a request, and the kinds of content, that no language model gets."""
    given = (name for name, value in (body.model_extra or {}).items() if value and name not in _NEUTRAL)
    parts = (part for it in body.messages if isinstance(it.content, list) for part in it.content)
    kinds = (f"{part.type[:40]} in messages" for part in parts if part.type not in _TEXT_PARTS)
    return tuple(dict.fromkeys([*(storable(name[:40]) for name in given), *map(storable, kinds)]))[:_MAX_IGNORED]


def _response_format(given: ResponseFormatIn | None) -> dict[str, Any] | None:
    if given is None or given.type == "text":
        return None
    if given.type not in {"json_object", "json_schema"}:
        raise UnsupportedParameterError("response_format", "response_format is text, json_object or json_schema.")
    if given.type == "json_schema" and (given.json_schema is None or given.json_schema.schema_ is None):
        raise UnsupportedParameterError("response_format", "A json_schema needs a name and a schema.")
    return given.model_dump(by_alias=True, exclude_none=True)


def _text_of(message: MessageIn) -> str:
    content = message.content or ""
    parts = [content] if isinstance(content, str) else [it.text or "" for it in content if it.type in _TEXT_PARTS]
    return storable("\n".join(parts)).strip()


def history_of(messages: Sequence[MessageIn]) -> tuple[Turn, ...]:
    """Return the questions before the last one with their answers, oldest first.

    The sources of these answers are unknown, so only a language model that may read all sources gets them.
    """
    turns: list[tuple[str, list[str]]] = []
    for message in messages:
        text = _text_of(message)
        if message.role == "user":
            turns.append((text, []))
        elif message.role == "assistant" and turns and text:
            turns[-1][1].append(text)
    return tuple(Turn(question, "\n\n".join(answers)) for question, answers in turns[:-1] if question)[-_MAX_TURNS:]


def rewritten(request: SearchRequest, rewriting: Rewriting) -> SearchRequest:
    """Return the search, with a follow-up question rewritten to a standalone question."""
    if not rewriting.is_rewritten:
        return request
    return replace(request, text=rewriting.searched, original_text=rewriting.asked)


def search_request(body: ChatIn, principal: Principal) -> SearchRequest:
    """Return the search of a chat request.

    Raises UnsupportedParameterError, MissingMessageError, EmptyQueryError, QueryTooLongError, or ModelNotFoundError.
    """
    if body.n is not None and body.n != 1:
        raise UnsupportedParameterError("n", "Each question gets one answer: n must be 1.")
    for name in ("tool_choice", "function_call"):
        if _requires_call(getattr(body, name)):
            raise UnsupportedParameterError(name, f"This server calls no tools: {name} must be none or auto.")
    return SearchRequest(
        preset=preset_of(body, principal),
        text=checked_query(question_of(body.messages)),
        top_k=body.corecube.top_k,
        narrowing=scope_request(body.corecube.scope),
        conditions=_conditions(body.corecube.filters),
        reveal_excluded=body.corecube.explain and principal.is_admin,
        overrides=body.corecube.overrides,
        surface=SearchRecord.Surface.CHAT,
    )


def preset_of(body: ChatIn, principal: Principal) -> str:
    """Return the preset that a request names; raise ModelNotFoundError if the principal may not use it."""
    preset = body.model if body.corecube.preset is None else body.corecube.preset
    if preset not in usable_presets(principal):
        raise ModelNotFoundError("model" if body.corecube.preset is None else "corecube.preset")
    return preset


def task_reply(body: ChatIn) -> str | None:
    """Return the reply to a request of a chat client for itself, None for a question; raise MissingMessageError."""
    return client_tasks.reply(question_of(body.messages), options_of(body).system, history_of(body.messages))


def _requires_call(choice: object) -> bool:
    """Return whether a choice requires a tool: "required", or a named tool; a list of allowed ones has a mode."""
    if isinstance(choice, dict) and choice.get("type") == "allowed_tools":
        allowed = choice.get("allowed_tools", choice)
        choice = allowed.get("mode") if isinstance(allowed, dict) else None
    return choice not in {None, "none", "auto"} if isinstance(choice, str | None) else True


def question_of(messages: list[MessageIn]) -> str:
    """Return the text of the last user message; its text parts are joined by line breaks."""
    questions = [message for message in messages if message.role == "user"]
    if not questions:
        raise MissingMessageError
    return _text_of(questions[-1])


def usable_presets(principal: Principal) -> list[str]:
    """Return the names of the presets that the principal may use."""
    return [name for name in PRESETS if principal.may_use(name)]


def _conditions(filters: object) -> Conditions | None:
    """Return the metadata conditions, None for none; raise UnsupportedParameterError for invalid ones."""
    if filters is None:
        return None
    try:
        return conditions_of(FiltersIn.model_validate(filters))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(("filters", *map(str, first["loc"])))
        raise UnsupportedParameterError("corecube.filters", f"{place}: {first['msg']}.") from error
