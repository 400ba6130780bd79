"""The chat request of the OpenAI-compatible API: question, history, preset, unsupported parameters.

Parameters of the answer are sent to the language model; unknown parameters are ignored.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Final

from pydantic import Field, ValidationError

from corecube.access import Principal
from corecube.errors import InvalidRequestError, NotFoundError
from corecube.sanitise import storable
from retrieval.answers.model_rewrite import follow_up
from retrieval.answers.rewrite import Said
from retrieval.api.dify import FiltersIn, conditions_of
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
_IGNORED: Final = ("top_p", "presence_penalty", "frequency_penalty", "logit_bias", "logprobs")
Stop = Annotated[str, Field(min_length=1, max_length=200)]
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
    """A part of a message's content; only text is supported."""

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
    """A question with the conversation before it."""

    model: str = Field(description="A preset's name, as GET /v1/models lists it.")
    messages: list[MessageIn]
    temperature: float | None = Field(default=None, ge=0, le=2, description=_LIMITED)
    max_tokens: int | None = Field(default=None, ge=1, description=_LIMITED)
    max_completion_tokens: int | None = Field(default=None, ge=1, description="The same as max_tokens.")
    stop: Stop | list[Stop] | None = Field(default=None, description="At most four texts that end the answer.")
    seed: int | None = Field(default=None, ge=-(2**63), lt=2**63)
    response_format: ResponseFormatIn | None = None
    top_p: Any = None
    presence_penalty: Any = None
    frequency_penalty: Any = None
    logit_bias: Any = None
    logprobs: Any = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: int | None = None
    tools: Any = None
    functions: Any = None
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
    """Return the parameters of a request that no language model gets."""
    return tuple(name for name in _IGNORED if getattr(body, name))


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
    parts = [content] if isinstance(content, str) else [part.text or "" for part in content if part.type == "text"]
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


def standalone(request: SearchRequest, history: Sequence[Turn], principal: Principal) -> SearchRequest:
    """Return the search, with a follow-up question rewritten to a standalone question."""
    said = tuple(Said(turn.question) for turn in history)
    rewriting = follow_up(principal, request.text, said, history)
    return (
        replace(request, text=rewriting.searched, original_text=rewriting.asked) if rewriting.is_rewritten else request
    )


def search_request(body: ChatIn, principal: Principal) -> SearchRequest:
    """Return the search of a chat request.

    Raises UnsupportedParameterError, MissingMessageError, EmptyQueryError, QueryTooLongError, or ModelNotFoundError.
    """
    if body.n is not None and body.n != 1:
        raise UnsupportedParameterError("n", "Each question gets one answer: n must be 1.")
    for name, value in (("tools", body.tools), ("functions", body.functions)):
        if value:
            raise UnsupportedParameterError(name, f"This server does not call tools: leave out {name}.")
    preset = body.model if body.corecube.preset is None else body.corecube.preset
    if preset not in usable_presets(principal):
        raise ModelNotFoundError("model" if body.corecube.preset is None else "corecube.preset")
    return SearchRequest(
        preset=preset,
        text=checked_query(question_of(body.messages)),
        top_k=body.corecube.top_k,
        narrowing=scope_request(body.corecube.scope),
        conditions=_conditions(body.corecube.filters),
        reveal_excluded=body.corecube.explain and principal.is_admin,
        overrides=body.corecube.overrides,
        surface=SearchRecord.Surface.CHAT,
    )


def question_of(messages: list[MessageIn]) -> str:
    """Return the text of the last user message; its text parts are joined by line breaks."""
    contents = [message.content or "" for message in messages if message.role == "user"]
    if not contents:
        raise MissingMessageError
    content = contents[-1]
    if isinstance(content, str):
        return content
    if any(part.type != "text" for part in content):
        raise UnsupportedParameterError("messages", "Only content parts of type text are supported.")
    return "\n".join(part.text or "" for part in content)


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
