"""Reading the markers of an answer that is finished or quoted. Pure."""

import re
from collections.abc import Iterator
from typing import Final

from retrieval.llm.draft import Draft
from retrieval.llm.types import Citation
from retrieval.text.markers import MARKER, Scanner, Token

_ESCAPABLE: Final = re.compile(rf"(?<!\\)(?P<before>\\*+)(?P<marker>{MARKER.pattern})")
_SURROUNDING: Final = re.compile(r"^\W+|(?<!\W)\W++$")


def find_citations(text: str, passage_count: int) -> tuple[Citation, ...]:
    """Return the markers [N] of passages 1 to `passage_count`, in order, of a text as a draft writes it."""
    return tuple(
        Citation(token.numbers[0], start, start + len(token.raw))
        for start, token in _placed(text)
        if token.numbers and token.raw == f"[{token.numbers[0]}]" and token.numbers[0] <= passage_count
    )


def _placed(text: str) -> Iterator[tuple[int, Token]]:
    """Yield every token with where it begins, its blanks not counted."""
    place = 0
    for token in Scanner().feed(text, is_last=True):
        place += len(token.blanks)
        yield place, token
        place += len(token.raw)


def normalised(text: str, passage_count: int) -> str:
    """Return a whole text with its markers as a draft writes them."""
    draft = Draft(passage_count)
    draft.add(text)
    draft.finish()
    return draft.text


def without_markers(text: str) -> str:
    """Return a text without its markers, whatever passages they name."""
    return normalised(text, 0)


def escape_markers(text: str) -> str:
    """Return quoted text with a backslash before every bracketed number, so that it is not taken for a citation."""
    return _ESCAPABLE.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    before, marker = found["before"], found["marker"]
    if len(before) % 2:
        return found[0]
    # A backslash makes only the plain bracket a sign like others.
    plain = marker if marker.startswith("[") else f"[{_SURROUNDING.sub('', marker)}]"
    return before + plain.replace("[", "\\[")
