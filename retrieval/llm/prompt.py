"""The prompt of a language model: the rules, the passages as fenced data, the conversation.

The system message contains nothing of a document, and no document can end the fence around it: the fence is random for
each request, and a passage can contain neither it nor anything similar.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from corecube.data import read_toml
from corecube.errors import InvalidRequestError
from retrieval.engine.types import CountTokens, Passage
from retrieval.llm.citations import without_markers
from retrieval.llm.neutral import neutral, plain
from retrieval.llm.types import Message, Options, Task, Turn, Window
from retrieval.ranking.packing import by_number

#: First sentence of an answer if the documents do not answer the question.
REFUSAL: Final = "I couldn't find this in your documents."

_FENCE_BYTES: Final = 8
_MESSAGE_TOKENS: Final = 8
#: Unused share of a window: a model's tokenizer may count up to this much more than the local one.
_SLACK: Final = 0.15

_PARTS: Final = read_toml("retrieval.llm", "prompt.toml")


class PromptTooLongError(InvalidRequestError, code="prompt_too_long"):
    """The question with the instructions is longer than the language model's context window."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """A task that fits a window, and the numbers of removed turns and passages."""

    task: Task
    left_out_turns: int = 0
    left_out_passages: int = 0


def new_fence(texts: Sequence[str]) -> str:
    """Return 16 random hexadecimal digits that none of the texts contains."""
    while any((fence := secrets.token_hex(_FENCE_BYTES)) in text for text in texts):
        pass
    return fence


def fence_for(task: Task) -> str:
    """Return a fence that nothing of a task contains."""
    turns = [text for turn in task.history for text in (turn.question, turn.answer)]
    parts = [text for it in task.passages for text in (it.header, it.hit.chunk.text)]
    return new_fence([task.question, task.options.system, *turns, *parts])


class FenceFilter:
    """Removes the fence from an answer while it is written: small models repeat it."""

    def __init__(self, fence: str) -> None:
        lines = (f"<<<{fence}>>>", f"<<<{fence}", f"{fence}>>>", fence)
        self._forms = tuple(form for line in lines for form in (f"{line}\n", line))
        self._opening, self._closing = f"<<<{fence}>>>\n", f"{fence}>>>\n"
        self._text = ""

    def add(self, piece: str) -> str:
        """Return the text that is final; the beginning of a fence is held back."""
        self._text += piece
        start = max(0, len(self._text) - len(self._opening))
        places = (place for place in range(start, len(self._text)) if self._may_begin(self._text[place:]))
        end = next(places, len(self._text))
        final, self._text = self._text[:end], self._text[end:]
        return self._without(final)

    def finish(self) -> str:
        """Return the rest."""
        return self._without(self._text)

    def _without(self, text: str) -> str:
        for form in self._forms:
            text = text.replace(form, "")
        return text

    def _may_begin(self, text: str) -> bool:
        begins = self._opening.startswith(text) or self._closing.startswith(text)
        # After the digits the rest is optional: a complete fence ends with its line.
        return begins and not text.endswith("\n")


def messages(task: Task, *, fence: str = "") -> tuple[Message, ...]:
    """Return the system message, the conversation, and the passages with the question; without a fence a new one."""
    fence = fence or fence_for(task)
    passages = "".join(f"{_fenced(passage, fence)}\n\n" for passage in task.passages)
    context = f"Passages:\n\n{passages}" if passages else "There are no passages.\n\n"
    return (
        {"role": "system", "content": _system(task.options, fence)},
        *(message for turn in task.history for message in _turn(turn)),
        {"role": "user", "content": f"{context}Question:\n{plain(task.question)}"},
    )


def _system(options: Options, fence: str) -> str:
    """Return the rules, then the instructions of the application, which cannot replace them."""
    parts = [_PARTS["system"].format(fence=fence, refusal=REFUSAL)]
    if options.is_json:
        parts.append(_PARTS["json"])
    if options.system:
        parts.append(_PARTS["application"].format(system=plain(options.system)))
    return "\n".join(parts)


def _turn(turn: Turn) -> tuple[Message, Message]:
    """Return an earlier question with its answer, without markers: their numbers meant other passages."""
    return (
        {"role": "user", "content": plain(turn.question)},
        {"role": "assistant", "content": neutral(without_markers(turn.answer))},
    )


def _fenced(passage: Passage, fence: str) -> str:
    """Return a passage under its number between the fence's lines; its number is the only marker."""
    number = f"### [{passage.number}] "
    header = " ".join(neutral(passage.header.removeprefix(number)).split())
    return f"<<<{fence}\n{number}{header}\n{neutral(passage.hit.chunk.text)}\n{fence}>>>"


def fitted(task: Task, window: Window | None, count: CountTokens) -> Fitted:
    """Return the task cut to a window: first the oldest turns are removed, then the passages of the highest numbers.

    `count` returns the number of tokens of each text. Raises PromptTooLongError if the question is too long.
    """
    if window is None:
        return Fitted(task)
    room = int((window.context_tokens - window.answer_tokens) * (1 - _SLACK))
    fence = "0" * 2 * _FENCE_BYTES
    bare = messages(replace(task, passages=(), history=()), fence=fence)
    room -= sum(count([message["content"] for message in bare])) + _MESSAGE_TOKENS * len(bare)
    if room < 0:
        raise PromptTooLongError
    ranked = by_number(task.passages)
    passage_count = _limit(count([_fenced(passage, fence) for passage in ranked]), room)
    passages = tuple(it for it in task.passages if it in ranked[:passage_count])
    room -= sum(count([_fenced(passage, fence) for passage in passages]))
    turn_tokens = (sum(count([message["content"] for message in _turn(turn)])) for turn in reversed(task.history))
    turn_count = _limit([2 * _MESSAGE_TOKENS + it for it in turn_tokens], room)
    history = task.history[len(task.history) - turn_count :]
    return Fitted(
        replace(task, passages=passages, history=history),
        len(task.history) - turn_count,
        len(task.passages) - passage_count,
    )


def _limit(tokens: Sequence[int], room: int) -> int:
    for place, needed in enumerate(tokens):
        room -= needed
        if room < 0:
            return place
    return len(tokens)
