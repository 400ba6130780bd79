"""The conversation before the last question of a chat request."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from corecube.access import Principal
from corecube.sanitise import storable
from retrieval.answers.model_rewrite import follow_up
from retrieval.answers.rewrite import Said
from retrieval.api.chat_schemas import MessageIn
from retrieval.llm.types import Turn
from retrieval.search.request import SearchRequest

#: More is not read of a conversation, from its end.
_MAX_TURNS: Final = 20


def history_of(messages: Sequence[MessageIn]) -> tuple[Turn, ...]:
    """Return the questions before the last one with their answers, oldest first; other roles say nothing.

    Where the passages of an answer came from nobody knows, so it goes to no language model that may not read them all.
    """
    asked: list[tuple[str, list[str]]] = []
    for message in messages:
        text = _text_of(message)
        if message.role == "user":
            asked.append((text, []))
        elif message.role == "assistant" and asked and text:
            asked[-1][1].append(text)
    return tuple(Turn(question, "\n\n".join(answers)) for question, answers in asked[:-1] if question)[-_MAX_TURNS:]


def standing_alone(request: SearchRequest, history: Sequence[Turn], principal: Principal) -> SearchRequest:
    """Return a search whose question, where it follows up on what was said before, is made to stand alone."""
    said = tuple(Said(turn.question) for turn in history)
    rewriting = follow_up(principal, request.text, said, history)
    return (
        replace(request, text=rewriting.searched, original_text=rewriting.asked) if rewriting.is_rewritten else request
    )


def _text_of(message: MessageIn) -> str:
    content = message.content or ""
    parts = [content] if isinstance(content, str) else [part.text or "" for part in content if part.type == "text"]
    return storable("\n".join(parts)).strip()
