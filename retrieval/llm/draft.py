"""An answer while it is being written: its markers made uniform, what may be sent of it, and whom it cites. Pure."""

from collections.abc import Iterable
from typing import Final

from retrieval.llm.types import Citation
from retrieval.text.markers import BEGUN, Scanner, Token

#: Characters before a marker that could make another one once it is gone.
_TAIL: Final = 80


class Draft:
    """Gathers pieces; hands out text that never ends inside a marker, and each passage's first citation.

    Every marker becomes one [N] for each passage that it names. Numbers that no passage has are left out and counted.
    However an answer is cut into pieces, its text and its citations are the same.
    """

    def __init__(self, passage_count: int) -> None:
        #: What has been handed out.
        self.text = ""
        #: Numbers that were left out.
        self.removed = 0
        self._passage_count = passage_count
        self._scanner = Scanner()
        self._cited: set[int] = set()
        self._citations: list[Citation] = []
        #: What follows `text` and is handed out next, and the length and the end of both.
        self._parts: list[str] = []
        self._length = 0
        self._end = ""

    @property
    def citations(self) -> tuple[Citation, ...]:
        """Every marker of the text, in order."""
        return tuple(self._citations)

    def add(self, piece: str) -> tuple[str, tuple[Citation, ...]]:
        """Return the text that is certain now, and the first citations of passages in it."""
        return self._take(self._scanner.feed(piece))

    def finish(self) -> tuple[str, tuple[Citation, ...]]:
        """Return the rest of the text, and the first citations of passages in it."""
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
        return fresh, self._first(self._citations[cited:])

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

    def _first(self, citations: Iterable[Citation]) -> tuple[Citation, ...]:
        fresh: list[Citation] = []
        for citation in citations:
            if citation.number not in self._cited:
                self._cited.add(citation.number)
                fresh.append(citation)
        return tuple(fresh)
