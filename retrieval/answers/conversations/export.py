"""Export a conversation as Markdown or JSON, as far as its user may read it now."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from retrieval.answers.conversations.reading import Exchange, ReferenceState
from retrieval.models import Conversation, Message

#: Shown instead of an answer that depends on passages that its user can no longer see.
WITHHELD: Final = "This answer is hidden: it depends on passages that you can no longer see."
_STATES: Final = {ReferenceState.HIDDEN: "no longer visible to you", ReferenceState.STALE: "changed or removed since"}
_ENDINGS: Final = {
    Message.State.STOPPED: "(stopped)",
    Message.State.FAILED: "(not finished: {problem})",
    Message.State.WAITING: "(not answered)",
    Message.State.WRITING: "(being written)",
}
_MARKDOWN: Final = re.compile(r"([\\`*_\[\]<>#|])")


def as_markdown(conversation: Conversation, exchanges: Sequence[Exchange]) -> str:
    """Return a conversation as Markdown: questions as headings, answers with numbered sources."""
    lines = [f"# {_plain(conversation.title)}", "", f"{conversation.created_at:%Y-%m-%d %H:%M} UTC"]
    for exchange in exchanges:
        lines += ["", *_markdown_of(exchange)]
    return "\n".join(lines) + "\n"


def as_json(conversation: Conversation, exchanges: Sequence[Exchange]) -> str:
    """Return a conversation as JSON."""
    return json.dumps(
        {
            "id": str(conversation.pk),
            "title": conversation.title,
            "preset": conversation.preset,
            "scope": conversation.narrowing,
            "created_at": conversation.created_at.isoformat(),
            "exchanges": [_json_of(exchange) for exchange in exchanges],
        },
        ensure_ascii=False,
        indent=2,
    )


def _markdown_of(exchange: Exchange) -> Iterator[str]:
    yield f"## {_plain(exchange.question)}"
    if exchange.standalone:
        yield f"\nSearched for: {_plain(exchange.standalone)}"
    yield ""
    yield WITHHELD if exchange.withheld else exchange.text
    if ending := _ENDINGS.get(exchange.state):
        yield f"\n{ending.format(problem=exchange.problem)}"
    if exchange.cited:
        yield "\nSources:\n"
        for it in exchange.cited:
            name = " — ".join(filter(None, (" > ".join((it.title, *it.heading_path)), it.connection)))
            state = _STATES.get(it.state, "")
            yield f"- [{it.number}] {_plain(f'{name} ({state})' if name and state else name or state)}"


def _json_of(exchange: Exchange) -> dict[str, Any]:
    return {
        "question": exchange.question,
        "searched_for": exchange.standalone or exchange.question,
        "answer": exchange.text,
        "withheld": exchange.withheld,
        "state": exchange.state.value,
        "problem": exchange.problem,
        "provider": exchange.answer.provider,
        "refused": exchange.is_refused,
        "at": exchange.answer.at.isoformat(),
        "feedback": exchange.answer.feedback,
        "unsupported": [dict(it) for it in exchange.unsupported],
        "passages": [
            {
                "number": it.number,
                "cited": it.cited,
                "standing": it.state.value,
                "title": it.title,
                "heading_path": list(it.heading_path),
                "connection": it.connection,
                "document": str(it.chunk.document_id) if it.chunk else None,
                "ordinal": it.chunk.ordinal if it.chunk else None,
                "rating": it.rating,
            }
            for it in exchange.references
        ],
    }


def _plain(text: str) -> str:
    return _MARKDOWN.sub(r"\\\1", " ".join(text.split()))
