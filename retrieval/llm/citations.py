"""Citation markers of answers: normalised while an answer is written, found in a finished one, escaped in quotes."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from retrieval.llm.types import Citation
from retrieval.text.markers import BEGUN, MARKER, Scanner, Token

_ESCAPABLE: Final = re.compile(rf"(?<!\\)(?P<before>\\*+)(?P<marker>{MARKER.pattern})")
_SURROUNDING: Final = re.compile(r"^\W+|(?<!\W)\W++$")
_TAIL: Final = 80  #: Characters before a removed marker that could form another marker.


class Draft:
    """An answer in progress: collects pieces, and returns text that never ends inside a marker, with new citations.

    Every marker becomes one [N] for each of its passages. Numbers without a passage are removed and counted. The text
    and the citations do not depend on the division into pieces.
    """

    def __init__(self, passage_count: int) -> None:
        self.text = ""
        self.removed = 0
        self._passage_count = passage_count
        self._scanner = Scanner()
        self._cited: set[int] = set()
        self._citations: list[Citation] = []
        self._parts: list[str] = []  #: The next text to return, and length and end of the complete text.
        self._length = 0
        self._end = ""

    @property
    def citations(self) -> tuple[Citation, ...]:
        """All citations of the text, in order."""
        return tuple(self._citations)

    def add(self, piece: str) -> tuple[str, tuple[Citation, ...]]:
        """Return the text that is final now, and the passages' first citations in it."""
        return self._take(self._scanner.feed(piece))

    def finish(self) -> tuple[str, tuple[Citation, ...]]:
        """Return the rest of the text, and the passages' first citations in it."""
        return self._take(self._scanner.feed("", is_last=True))

    def _take(self, tokens: Iterable[Token]) -> tuple[str, tuple[Citation, ...]]:
        cited = len(self._citations)
        for token in tokens:
            if token.numbers is None:
                self._append(token.raw)
            else:
                self._cite(token, token.numbers)
        fresh = "".join(self._parts)
        self._parts.clear()
        self.text += fresh
        first: list[Citation] = []
        for citation in self._citations[cited:]:
            if citation.number not in self._cited:
                self._cited.add(citation.number)
                first.append(citation)
        return fresh, tuple(first)

    def _append(self, text: str) -> None:
        self._parts.append(text)
        self._length += len(text)
        self._end = (self._end + text)[-_TAIL:]

    def _cite(self, marker: Token, numbers: tuple[int, ...]) -> None:
        known = [number for number in numbers if number <= self._passage_count]
        self.removed += len(numbers) - len(known)
        if not known:
            if BEGUN.search(self._end):
                self._append(f"{marker.blanks}\\{marker.raw}")
            return
        self._append(marker.blanks)
        for number in known:
            start = self._length
            self._append(f"[{number}]")
            self._citations.append(Citation(number, start, self._length))


def find_citations(text: str, passage_count: int) -> tuple[Citation, ...]:
    """Return the citations [N] of passages 1 to `passage_count` in a normalised text, in order."""
    return tuple(
        Citation(token.numbers[0], start, start + len(token.raw))
        for start, token in _placed(text)
        if token.numbers and token.raw == f"[{token.numbers[0]}]" and token.numbers[0] <= passage_count
    )


def _placed(text: str) -> Iterator[tuple[int, Token]]:
    place = 0
    for token in Scanner().feed(text, is_last=True):
        place += len(token.blanks)
        yield place, token
        place += len(token.raw)


def normalised(text: str, passage_count: int) -> str:
    """Return a complete text with its markers as in a draft."""
    draft = Draft(passage_count)
    draft.add(text)
    draft.finish()
    return draft.text


def without_markers(text: str) -> str:
    """Return a text without its markers."""
    return normalised(text, 0)


def escape_markers(text: str) -> str:
    """Return quoted text with a backslash before every bracketed number, so that it is not a citation."""
    return _ESCAPABLE.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    before, marker = found["before"], found["marker"]
    if len(before) % 2:
        return found[0]
    # A backslash only escapes the plain bracket.
    plain = marker if marker.startswith("[") else f"[{_SURROUNDING.sub('', marker)}]"
    return before + plain.replace("[", "\\[")
