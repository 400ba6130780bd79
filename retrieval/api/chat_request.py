"""The chat request of the OpenAI-compatible API: question, history, preset, unsupported parameters.

Unknown parameters are ignored.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

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
from retrieval.llm.types import Turn
from retrieval.models import SearchRecord
from retrieval.presets.catalog import PRESETS
from retrieval.search.request import SearchRequest, checked_query

_MAX_TURNS: Final = 20  #: Only the last turns of a conversation are read.


class UnsupportedParameterError(InvalidRequestError):
    """A parameter requests a feature that this server does not support."""

    status: ClassVar[int] = 400
    code: ClassVar[str] = "unsupported_parameter"

    def __init__(self, param: str, message: str) -> None:
        self.param = param
        super().__init__(message)


class MissingMessageError(InvalidRequestError):
    """There is no user message to answer."""

    code: ClassVar[str] = "missing_message"


class ModelNotFoundError(NotFoundError):
    """No model with that name can be used with this API key."""

    code: ClassVar[str] = "model_not_found"

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


class ChatIn(RequestBody):
    """A question with the conversation before it."""

    model: str = Field(description="A preset's name, as GET /v1/models lists it.")
    messages: list[MessageIn]
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


def history_of(messages: Sequence[MessageIn]) -> tuple[Turn, ...]:
    """Return the questions before the last one with their answers, oldest first; other roles are ignored.

    The sources of these answers are unknown, so only a language model that may read all sources gets them.
    """
    turns: list[tuple[str, list[str]]] = []
    for message in messages:
        content = message.content or ""
        parts = [content] if isinstance(content, str) else [part.text or "" for part in content if part.type == "text"]
        text = storable("\n".join(parts)).strip()
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
