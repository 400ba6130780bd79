"""Answers in the format of OpenAI's Responses API: an object with one message, or its stream of typed events."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from retrieval.answers.conversations.reading import Exchange
from retrieval.answers.events import Done
from retrieval.answers.json_answers import JsonDraft
from retrieval.answers.json_quotes import Cited, shape_for
from retrieval.api.openai.answer import Chat, Json, annotation, ending
from retrieval.api.openai.streaming import event
from retrieval.api.shape import Absolute, document_path
from retrieval.llm.citations import find_citations
from retrieval.llm.types import Citation, Cut, TokenUsage
from retrieval.models import Message

_CUT: Final = {Cut.LENGTH: "max_output_tokens", Cut.CONTENT_FILTER: "content_filter"}
_STATUS: Final = {
    Message.State.DONE: "completed",
    Message.State.FAILED: "failed",
    Message.State.STOPPED: "incomplete",
    Message.State.WAITING: "in_progress",
    Message.State.WRITING: "in_progress",
}
#: What no answer here uses, but clients' types require.
_UNUSED: Final[Json] = {
    "error": None,
    "incomplete_details": None,
    "parallel_tool_calls": False,
    "reasoning": {"effort": None, "summary": None},
    "tool_choice": "none",
    "tools": [],
    "top_p": None,
    "truncation": "disabled",
    "user": None,
}


class ResponseFormat:
    """Responses, whole and as events; `echo` is what a response repeats of its request, with its id."""

    def __init__(self, chat: Chat, echo: Json) -> None:
        self._chat, self._echo = chat, echo
        self._message_id = f"msg_{echo['id'].removeprefix('resp_')}"
        self._number = 0  #: The next event's.
        self._part: Json = {}  #: The content so far; empty before the first text.

    def whole(self, done: Done) -> Json:
        """Return the complete response."""
        part = _text_part(done.text, self._annotations(done.citations))
        if self._chat.is_refusal_only(done):
            part = _refusal_part(done.text)
        return self._finished(done, part)

    def opening(self) -> Iterator[bytes]:
        """Yield the events before the first text: the response and its message."""
        yield self._event("response.created", response=self._object("in_progress"))
        yield self._event("response.in_progress", response=self._object("in_progress"))
        yield self._event("response.output_item.added", output_index=0, item=self._item("in_progress"))

    def text(self, text: str, *, is_refusal: bool) -> Iterator[bytes]:
        """Yield the next text, before the first one the part that it belongs to."""
        if not self._part:
            self._part = _refusal_part("") if is_refusal else _text_part("", [])
            yield self._part_event("response.content_part.added", part=self._part)
        name = "refusal" if is_refusal else "text"
        self._part = {**self._part, name: self._part[name] + text}
        kind = "response.refusal.delta" if is_refusal else "response.output_text.delta"
        yield self._part_event(kind, delta=text, **({} if is_refusal else {"logprobs": []}))

    def cited(self, citations: Sequence[Citation]) -> Iterator[bytes]:
        """Yield the citations as annotations; a refusal has none."""
        if "refusal" in self._part:
            return
        for it in self._annotations(citations):
            known = self._part.get("annotations", [])
            yield self._part_event("response.output_text.annotation.added", annotation_index=len(known), annotation=it)
            self._part = {**self._part, "annotations": [*known, it]}

    def ending(self, done: Done) -> Iterator[bytes]:
        """Yield the events that complete the part, the message and the response."""
        if "refusal" in self._part:
            yield self._part_event("response.refusal.done", refusal=self._part["refusal"])
        else:
            self._part = _text_part(done.text, self._annotations(done.citations))
            yield self._part_event("response.output_text.done", text=done.text, logprobs=[])
        yield self._part_event("response.content_part.done", part=self._part)
        finished = self._finished(done, self._part)
        yield self._event("response.output_item.done", output_index=0, item=finished["output"][0])
        yield self._event(f"response.{finished['status']}", response=finished)

    def failure(self, error: Json) -> Iterator[bytes]:
        """Yield the failed response."""
        known = error["error"]
        failed = {"code": known["code"], "message": known["message"]}
        yield self._event("response.failed", response={**self._object("failed"), "error": failed})

    def _finished(self, done: Done, part: Json) -> Json:
        status = "incomplete" if done.cut else "completed"
        return {
            **self._object(status),
            "incomplete_details": {"reason": _CUT[done.cut]} if done.cut else None,
            "output": [self._item(status, part)],
            "usage": _usage(done.usage),
            **ending(self._chat, done),
        }

    def _object(self, status: str) -> Json:
        head = {"object": "response", "created_at": self._chat.created, "model": self._chat.outcome.preset.name}
        return {**_UNUSED, **self._echo, **head, "status": status, "output": [], "usage": None}

    def _item(self, status: str, *content: Json) -> Json:
        return _message(self._message_id, status, *content)

    def _annotations(self, citations: Sequence[Citation]) -> list[Json]:
        return [{"type": "url_citation", **annotation(self._chat, it)} for it in citations]

    def _part_event(self, kind: str, **more: object) -> bytes:
        return self._event(kind, item_id=self._message_id, output_index=0, content_index=0, **more)

    def _event(self, kind: str, **more: object) -> bytes:
        self._number += 1
        return event({"type": kind, "sequence_number": self._number - 1, **more}, kind)


def stored_response(exchange: Exchange, id_: str, previous: str | None, absolute: Absolute) -> Json:
    """Return a stored answer as a response; citations of passages that are no longer visible have no annotation."""
    answer = exchange.answer
    cited = {
        it.number: Cited(number=it.number, title=it.title, url=absolute(document_path(*it.chunk)))
        for it in exchange.references
        if it.is_visible and it.chunk is not None
    }
    text, citations = _as_required(exchange, cited)
    annotations = [
        {
            "type": "url_citation",
            "start_index": it.start,
            "end_index": it.end,
            "title": facts["title"],
            "url": facts["url"],
        }
        for it in citations
        if (facts := cited.get(it.number))
    ]
    status = _STATUS[exchange.state]
    part = (
        _refusal_part(text)
        if answer.response_format and _is_without_quotes(exchange)
        else _text_part(text, annotations)
    )
    content = [part] if text else []
    failed = {"code": exchange.problem, "message": "The answer failed."} if exchange.problem else None
    return {
        **_UNUSED,
        "id": id_,
        "object": "response",
        "created_at": int(answer.at.timestamp()),
        "status": status,
        "error": failed,
        "model": answer.conversation.preset,
        "output": [_message(f"msg_{answer.pk.hex}", status, *content)],
        "previous_response_id": previous,
        "instructions": None,
        "metadata": {},
        "usage": None,
    }


def _as_required(exchange: Exchange, cited: Mapping[int, Cited]) -> tuple[str, Sequence[Citation]]:
    """Return the text of a stored answer with its citations: quotes as JSON where the request required JSON."""
    answer, text, count = exchange.answer, exchange.text, len(exchange.references)
    if not (answer.response_format and text) or exchange.is_refused or _is_without_quotes(exchange):
        return text, find_citations(text, count)
    draft = JsonDraft(count)
    if answer.is_extractive:
        used = dict.fromkeys(it.number for it in find_citations(text, count))
        text = shape_for(answer.response_format).filled(text, [cited[it] for it in used if it in cited])
    draft.add(text)
    return draft.text, draft.finish()[1]


def _is_without_quotes(exchange: Exchange) -> bool:
    return exchange.answer.is_extractive and (exchange.is_refused or not exchange.cited)


def _message(id_: str, status: str, *content: Json) -> Json:
    return {"id": id_, "type": "message", "status": status, "role": "assistant", "content": list(content)}


def _text_part(text: str, annotations: list[Json]) -> Json:
    return {"type": "output_text", "text": text, "annotations": annotations, "logprobs": []}


def _refusal_part(text: str) -> Json:
    return {"type": "refusal", "refusal": text}


def _usage(used: TokenUsage) -> Json:
    return {
        "input_tokens": used.prompt,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": used.completion,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": used.prompt + used.completion,
    }
