"""The prompts for a chunk's context line and questions, and the parsing of the answers. Pure.

"Introducing Contextual Retrieval", Anthropic 2024; Nogueira and Lin, "From doc2query to docTTTTTquery", 2019. The
model gets no tools, and its answer only becomes the context line or questions of one chunk: instructions in a
document change nothing else.
"""

import json
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from corecube.data import read_toml
from retrieval.errors import EnrichError

_AROUND_CHARACTERS: Final = 6000  #: Maximum length of the parent section and of the document's beginning in a prompt.
_BEGINNING_CHARACTERS: Final = 1000
_CONTEXT_CHARACTERS: Final = 600
_QUESTION_CHARACTERS: Final = range(8, 201)
MAX_QUESTIONS: Final = 5
MAX_ANSWER_TOKENS: Final = 250  #: Maximum number of tokens of an answer, and the mean for cost estimates.
TYPICAL_ANSWER_TOKENS: Final = 90

_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s")
_NUMBERING: Final = re.compile(r"^\s*(?:[-*\u2022]|\(?\d{1,2}[.):])\s*")
_INVISIBLE: Final = frozenset({"Cc", "Cf", "Co", "Cs", "Cn"})
_TASKS: Final = read_toml("retrieval.ingest.enrich", "prompts.toml")


def task(name: str, *, count: int = 0) -> str:
    """Return the instructions for one kind of text, of which the model writes at most `count`."""
    return str(_TASKS[name]).format(data=_TASKS["data"], count=count)


CONTEXT_TASK: Final = task("context")
QUESTIONS_TASK: Final = task("questions", count=MAX_QUESTIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A chunk and its surroundings in the document."""

    title: str
    heading_path: Sequence[str]
    text: str
    section: str  #: The texts of its parent section's chunks, including its own.
    beginning: str


def messages(task: str, place: Place) -> list[dict[str, str]]:
    """Return the messages of a task for one chunk."""
    parts = {
        "document_title": place.title,
        "document_beginning": place.beginning[:_BEGINNING_CHARACTERS],
        "headings": list(place.heading_path),
        "section": _around(place.section, place.text),
        "chunk": place.text,
    }
    return [{"role": "system", "content": task}, {"role": "user", "content": json.dumps(parts, ensure_ascii=False)}]


def context_in(answer: str) -> str:
    """Return the answer as one paragraph of at most 600 characters; raise EnrichError for an empty one."""
    text = plain(answer)
    if not text:
        raise EnrichError("The model's answer is empty.")
    if len(text) <= _CONTEXT_CHARACTERS:
        return text
    cut = text[:_CONTEXT_CHARACTERS]
    ends = [found.start() for found in _SENTENCE_END.finditer(cut)]
    return cut[: ends[-1]] if ends else cut.rpartition(" ")[0] or cut


def questions_in(answer: str) -> tuple[str, ...]:
    """Return the questions of an answer, at most five, each of at most 200 characters; raise EnrichError for none."""
    lines = (plain(_NUMBERING.sub("", line)) for line in answer.splitlines())
    found = [line for line in lines if line.endswith("?") and len(line) in _QUESTION_CHARACTERS]
    if not found:
        raise EnrichError("The model wrote no question.")
    return tuple(dict.fromkeys(found))[:MAX_QUESTIONS]


def expansions_in(lines: Sequence[str]) -> tuple[str, ...]:
    """Return the different questions of a question model: up to five of up to 200 characters. Raises EnrichError."""
    found: dict[str, str] = {}
    for line in map(plain, lines):
        if len(line) in _QUESTION_CHARACTERS:
            found.setdefault(line.casefold(), line)
    if not found:
        raise EnrichError("The model wrote no question.")
    return tuple(found.values())[:MAX_QUESTIONS]


def _around(section: str, text: str) -> str:
    if section.strip() == text.strip():
        return ""
    if len(section) <= _AROUND_CHARACTERS:
        return section
    middle = max(0, section.find(text)) + len(text) // 2
    start = min(max(0, middle - _AROUND_CHARACTERS // 2), len(section) - _AROUND_CHARACTERS)
    return section[start : start + _AROUND_CHARACTERS]


def plain(text: str) -> str:
    """Return the text on one line, without control, format, private-use and unassigned characters."""
    visible = (char for char in text if char.isspace() or unicodedata.category(char) not in _INVISIBLE)
    return " ".join("".join(visible).split())
