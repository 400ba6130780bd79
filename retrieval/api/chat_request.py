"""Reading a chat request: the question, the preset, and refusing what is not supported."""

from pydantic import ValidationError

from corecube.access import Principal
from retrieval.api.chat_schemas import ChatIn, ContentPart, MessageIn
from retrieval.api.dify_schemas import FiltersIn, conditions_of
from retrieval.api.errors import MissingMessageError, ModelNotFoundError, UnsupportedParameterError
from retrieval.api.search import scope_request
from retrieval.engine.metadata_conditions import Conditions
from retrieval.models import SearchRecord
from retrieval.presets.catalog import PRESETS
from retrieval.search.request import SearchRequest, checked_query


def search_request(body: ChatIn, principal: Principal) -> SearchRequest:
    """Return the search that a chat request asks for.

    Raises UnsupportedParameterError, MissingMessageError, EmptyQueryError, QueryTooLongError, or ModelNotFoundError.
    """
    _refuse_unsupported(body)
    return SearchRequest(
        preset=_preset(body, principal),
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
    asked = [message for message in messages if message.role == "user"]
    if not asked:
        raise MissingMessageError
    content = asked[-1].content or ""
    return content if isinstance(content, str) else "\n".join(map(_text, content))


def usable_presets(principal: Principal) -> list[str]:
    """Return the names of the presets that the principal may use."""
    return [name for name in PRESETS if principal.may_use(name)]


def _text(part: ContentPart) -> str:
    if part.type != "text":
        raise UnsupportedParameterError("messages", "Only content parts of type text can be read.")
    return part.text or ""


def _preset(body: ChatIn, principal: Principal) -> str:
    name = body.model if body.corecube.preset is None else body.corecube.preset
    if name not in usable_presets(principal):
        raise ModelNotFoundError("model" if body.corecube.preset is None else "corecube.preset")
    return name


def _refuse_unsupported(body: ChatIn) -> None:
    if body.n is not None and body.n != 1:
        raise UnsupportedParameterError("n", "One answer is given for a question: n must be 1.")
    for name, value in (("tools", body.tools), ("functions", body.functions)):
        if value:
            raise UnsupportedParameterError(name, f"This server calls no tools: leave out {name}.")


def _conditions(filters: object) -> Conditions | None:
    """Return the conditions that were sent, None without any; raise UnsupportedParameterError for what is none."""
    if filters is None:
        return None
    try:
        read = FiltersIn.model_validate(filters)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(("filters", *map(str, first["loc"])))
        raise UnsupportedParameterError("corecube.filters", f"{place}: {first['msg']}.") from error
    return conditions_of(read)
