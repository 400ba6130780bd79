"""Requests that chat clients send for themselves: a title, tags or follow-up questions of a conversation.

They are answered without a search, which would find nothing and fill the query log. Pure.
"""

import json
import re
from collections.abc import Sequence
from typing import Final

from retrieval.engine.query import cut
from retrieval.llm.types import Turn

#: Open WebUI writes the conversation into its prompt, with the key of the JSON that it expects.
_OPEN_WEBUI: Final = re.compile(r"\s*### Task:\s.*?JSON format: *\{ *\"(?P<key>\w+)\"", re.DOTALL)
#: LibreChat, Lobe Chat, NextChat and others ask in a sentence, of the conversation before it or below it.
_TITLE: Final = re.compile(
    r"(?:generate|provide|create|write|give|summari[sz]e)\b[^.\n]{0,80}\btitle\b[^.\n]{0,40}\b(?:conversation|chat)\b",
    re.IGNORECASE,
)
_TITLE_WITHIN: Final = 300  #: Characters of a prompt in which a title is asked for.
_FIRST_QUESTION: Final = re.compile(r"^(?:\|\|>)?(?:USER|User|Human):\s*\"?(?P<text>[^\n]+)", re.MULTILINE)
_EMPTY: Final = {"tags": [], "follow_ups": [], "queries": [], "text": "", "prompt": ""}
_MAX_TITLE_LENGTH: Final = 60
_UNTITLED: Final = "New chat"


def reply(question: str, system: str, history: Sequence[Turn]) -> str | None:
    """Return the reply to a client's own request, as text or JSON; None for a question to the documents.

    A title is the first question of the conversation; there are no tags and no follow-up questions.
    """
    asked = _OPEN_WEBUI.match(question)
    if asked is not None and "<chat_history>" in question:
        key = asked["key"]
        return json.dumps({key: _title(question, history) if key == "title" else _EMPTY.get(key, "")})
    has_conversation = _FIRST_QUESTION.search(question) is not None
    is_title = (_asks_for_title(question) and (has_conversation or history)) or (
        _asks_for_title(system) and has_conversation
    )
    return _title(question, history) if is_title else None


def _asks_for_title(prompt: str) -> bool:
    return _TITLE.search(prompt[:_TITLE_WITHIN]) is not None


def _title(prompt: str, history: Sequence[Turn]) -> str:
    written = _FIRST_QUESTION.search(prompt)
    first = history[0].question if history else written["text"] if written else ""
    line = " ".join(first.split()).strip('"')
    return (line if len(line) <= _MAX_TITLE_LENGTH else f"{cut(line, _MAX_TITLE_LENGTH)}…").rstrip("?") or _UNTITLED
