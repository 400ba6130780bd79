"""Chat completions in OpenAI's format, with citations, search results and CoreCube's extension."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any, Final, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from retrieval.answers.answering import DOUBTFUL, UNKNOWN_LANGUAGE, Answering
from retrieval.answers.events import Done, Outcome
from retrieval.api.schemas import AnswerabilityOut, Explanation, SearchOut, Source
from retrieval.api.shape import Absolute, answerability, document_path, search_out, source
from retrieval.engine.types import Passage
from retrieval.llm.options import ABOUT_REQUEST, ignored
from retrieval.llm.types import Citation, TokenUsage
from retrieval.ranking.packing import by_number
from retrieval.search.outcome import SearchOutcome

_EVENTS: Final = (
    "With `stream`: events with chat.completion.chunk objects, then `[DONE]`; a failure is an event with `error`."
)
#: OpenAPI description of the second content type, for streamed answers.
STREAMED: Final[dict[str, Any]] = {
    "responses": {200: {"content": {"text/event-stream": {"schema": {"type": "string", "description": _EVENTS}}}}}
}
#: Codes of notices about the question or the request.
_NOT_DEGRADED: Final = frozenset({DOUBTFUL, UNKNOWN_LANGUAGE}) | ABOUT_REQUEST
Json = dict[str, Any]


class ModelOut(BaseModel):
    """A preset as a model."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ModelsOut(BaseModel):
    """The presets that the key may use."""

    object: Literal["list"]
    data: list[ModelOut]


class UrlCitation(BaseModel):
    """A citation's position in the text, in code points, end exclusive, and its target."""

    start_index: int
    end_index: int
    title: str
    url: str


class AnnotationOut(BaseModel):
    """A citation."""

    type: Literal["url_citation"]
    url_citation: UrlCitation


class MessageOut(BaseModel):
    """The answer."""

    role: Literal["assistant"]
    content: str | None
    refusal: str | None = Field(description="The refusal text of a JSON answer without passages.")
    annotations: list[AnnotationOut]


class ChoiceOut(BaseModel):
    """The choice; there is always one."""

    index: int
    message: MessageOut
    logprobs: None
    finish_reason: str


class UsageOut(BaseModel):
    """Token counts."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class SearchResultOut(BaseModel):
    """A passage behind the answer, and whether it is cited."""

    number: int = Field(description="The N of [N].")
    title: str
    heading_path: list[str]
    url: str
    snippet: str
    score: float
    source: Source
    date: date
    cited: bool


class ExtensionOut(BaseModel):
    """CoreCube's extension of an answer."""

    model_config = ConfigDict(extra="allow")

    trace_id: UUID
    preset: str
    provider: str
    outcome: Outcome = Field(
        description="asserted: it answers; hedged: it may not answer; refused: it says that no document does."
    )
    answerability: AnswerabilityOut | None
    degraded: list[str]
    usage_is_estimated: bool
    explain: SearchOut | None = None


class CompletionOut(BaseModel):
    """A complete answer."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[ChoiceOut]
    usage: UsageOut
    citations: list[str] = Field(description="URLs of the passages; [N] has the index N-1.")
    search_results: list[SearchResultOut]
    corecube: ExtensionOut


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """A question after its search, with everything that its answer needs."""

    answering: Answering
    absolute: Absolute
    created: int  #: Seconds since 1970.
    explanation: Explanation | None = None  #: What each stage did, if requested.
    ignored: tuple[str, ...] = ()  #: Parameters of the request that no language model gets.

    @property
    def outcome(self) -> SearchOutcome:
        """The search behind the answer."""
        return self.answering.outcome

    @property
    def is_refusal_only(self) -> bool:
        """Whether the answer was to be JSON, and there are no passages to answer from."""
        return self.answering.options.is_json and not self.outcome.passages


def completion(chat: Chat, done: Done) -> Json:
    """Return a complete answer."""
    message = {
        "role": "assistant",
        "content": None if chat.is_refusal_only else done.text,
        "refusal": done.text if chat.is_refusal_only else None,
        "annotations": [annotation(chat, citation) for citation in done.citations],
    }
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish_reason(done)}
    head = _head(chat, "chat.completion")
    return {**head, "choices": [choice], "usage": usage(done.usage), **ending(chat, done)}


def chunk(chat: Chat, delta: Json, *, finish_reason: str | None = None) -> Json:
    """Return one chunk of a streamed answer."""
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    return {**_head(chat, "chat.completion.chunk"), "choices": [choice]}


def finish_reason(done: Done) -> str:
    """Return how an answer ended: "stop", or why it is incomplete."""
    return done.cut.value if done.cut else "stop"


def usage_chunk(chat: Chat, done: Done) -> Json:
    """Return the chunk that ends a stream with its token counts."""
    return {**_head(chat, "chat.completion.chunk"), "choices": [], "usage": usage(done.usage)}


def annotation(chat: Chat, citation: Citation) -> Json:
    """Return a citation: its position in the text, in code points, end exclusive, and its target."""
    passage = by_number(chat.outcome.passages)[citation.number - 1]
    target = {
        "start_index": citation.start,
        "end_index": citation.end,
        "title": passage.hit.chunk.title,
        "url": _url(chat, passage),
    }
    return {"type": "url_citation", "url_citation": target}


def ending(chat: Chat, done: Done) -> Json:
    """Return what follows a finished answer: the URLs of the passages, all passages, and CoreCube's extension."""
    cited, passages = set(done.cited), by_number(chat.outcome.passages)
    return {
        "citations": [_url(chat, passage) for passage in passages],
        "search_results": [_result(chat, passage, cited=passage.number in cited) for passage in passages],
        "corecube": _extension(chat, done),
    }


def usage(used: TokenUsage) -> Json:
    """Return token counts in OpenAI's format."""
    total = used.prompt + used.completion
    return {"prompt_tokens": used.prompt, "completion_tokens": used.completion, "total_tokens": total}


def models(names: Sequence[str]) -> Json:
    """Return the list of models."""
    return {"object": "list", "data": [model(name) for name in names]}


def model(name: str) -> Json:
    """Return a preset as a model."""
    return {"id": name, "object": "model", "created": 0, "owned_by": "corecube"}


def _head(chat: Chat, kind: str) -> Json:
    return {
        "id": f"chatcmpl-{chat.outcome.id.hex}",
        "object": kind,
        "created": chat.created,
        "model": chat.outcome.preset.name,
    }


def _url(chat: Chat, passage: Passage) -> str:
    return chat.absolute(document_path(*passage.hit.chunk_id))


def _result(chat: Chat, passage: Passage, *, cited: bool) -> Json:
    facts = passage.hit.chunk
    connection = chat.outcome.state.scope.inclusion(facts.connection_id).connection
    return {
        "number": passage.number,
        "title": facts.title,
        "heading_path": list(facts.heading_path),
        "url": _url(chat, passage),
        "snippet": facts.text,
        "score": passage.score,
        "source": source(connection).model_dump(),
        "date": (facts.modified_at or facts.synced_at).date().isoformat(),
        "cited": cited,
    }


def _extension(chat: Chat, done: Done) -> Json:
    judged = answerability(chat.outcome, with_signals=False)
    notices = [*done.notices, *([ignored(chat.ignored, "They have no effect here.")] if chat.ignored else [])]
    out: Json = {
        "trace_id": str(chat.outcome.id),
        "preset": chat.outcome.preset.name,
        "provider": done.provider,
        "outcome": done.outcome,
        "answerability": None if judged is None else judged.model_dump(mode="json", exclude_unset=True),
        "degraded": [*chat.outcome.state.degraded, *(it.code for it in notices if it.code not in _NOT_DEGRADED)],
        "unsupported": [asdict(sentence) for sentence in done.unsupported],
        "removed_citations": done.removed,
        "notices": [asdict(notice) for notice in notices],
        "usage_is_estimated": done.usage.is_estimated,
    }
    if chat.explanation is not None:
        found = search_out(chat.outcome, chat.absolute, chat.explanation)
        out["explain"] = found.model_dump(mode="json", exclude_unset=True)
    return out
