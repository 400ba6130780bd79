"""An answer in the terms that all of OpenAI's formats share: citations, passages, usage, CoreCube's extension."""

from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from retrieval.answers.answering import CORRECTED, DOUBTFUL, UNKNOWN_LANGUAGE, Answering
from retrieval.answers.conversations.writing import Writing
from retrieval.answers.events import Done
from retrieval.answers.json_answers import JsonDraft
from retrieval.answers.json_quotes import Cited
from retrieval.api.shape import Absolute, answerability, document_path, source
from retrieval.engine.types import Passage
from retrieval.llm.options import ABOUT_REQUEST, ignored
from retrieval.llm.types import Citation, TokenUsage
from retrieval.ranking.packing import by_number
from retrieval.search.outcome import SearchOutcome

#: Codes of notices about the question or the request.
_NOT_DEGRADED: Final = frozenset({CORRECTED, DOUBTFUL, UNKNOWN_LANGUAGE}) | ABOUT_REQUEST
Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """A question after its search, with everything that its answer needs."""

    answering: Answering
    absolute: Absolute
    created: int  #: Seconds since 1970.
    explained: Json | None = None  #: The response of /api/v1/search, if requested.
    ignored: tuple[str, ...] = ()  #: Parameters of the request that no language model gets.
    writing: Writing | None = None  #: Its message in a stored conversation; None to store none.

    @property
    def outcome(self) -> SearchOutcome:
        """The search behind the answer."""
        return self.answering.outcome

    def is_refusal_only(self, done: Done | None = None) -> bool:
        """Whether the answer was to be JSON, and there are no passages to answer from, or no quotes in the end."""
        is_unquoted = done is not None and done.extractive and done.refused
        return self.answering.options.is_json and (is_unquoted or not self.outcome.passages)


def quoted(chat: Chat, done: Done) -> Done:
    """Return an answer with its quotes as JSON where the request requires JSON and no language model wrote it."""
    shape = chat.answering.json_shape
    if shape is None or done.refused:
        return done
    passages = by_number(chat.outcome.passages)
    cited = [
        Cited(number=number, title=passages[number - 1].hit.chunk.title, url=_url(chat, passages[number - 1]))
        for number in done.cited
    ]
    draft = JsonDraft(len(passages))
    draft.add(shape.filled(done.text, cited))
    return replace(done, text=draft.text, citations=draft.finish()[1])


def head(chat: Chat, id_: str, kind: str) -> Json:
    """Return what every object of an answer begins with."""
    return {"id": id_, "object": kind, "created": chat.created, "model": chat.outcome.preset.name}


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
    if chat.explained is not None:
        out["explain"] = chat.explained
    return out


def finish_reason(done: Done) -> str:
    """Return how an answer ended: "stop", or why it is incomplete."""
    return done.cut.value if done.cut else "stop"


def annotation(chat: Chat, citation: Citation) -> Json:
    """Return a citation: its position in the text, in code points, end exclusive, and its target."""
    passage = by_number(chat.outcome.passages)[citation.number - 1]
    return {
        "start_index": citation.start,
        "end_index": citation.end,
        "title": passage.hit.chunk.title,
        "url": _url(chat, passage),
    }


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
