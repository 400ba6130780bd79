"""An answer while it is being written: its markers made uniform, what may be sent of it, and whom it cites. Pure."""

from collections.abc import Iterable
from typing import Final

from retrieval.generate.markers import BEGUN, Scanner, Token
from retrieval.generate.types import Citation

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
        #: Every marker of the text, in order.
        self.citations: tuple[Citation, ...] = ()
        #: Numbers that were left out.
        self.removed = 0
        self._passage_count = passage_count
        self._scanner = Scanner()
        self._cited: set[int] = set()

    def add(self, piece: str) -> tuple[str, tuple[Citation, ...]]:
        """Return the text that is certain now, and the first citations of passages in it."""
        return self._take(self._scanner.feed(piece))

    def finish(self) -> tuple[str, tuple[Citation, ...]]:
        """Return the rest of the text, and the first citations of passages in it."""
        return self._take(self._scanner.feed("", is_last=True))

    def _take(self, tokens: Iterable[Token]) -> tuple[str, tuple[Citation, ...]]:
        sent, cited = len(self.text), len(self.citations)
        for token in tokens:
            if token.numbers is None:
                self.text += token.raw
            else:
                self._cite(token, token.numbers)
        return self.text[sent:], self._first(self.citations[cited:])

    def _cite(self, marker: Token, numbers: tuple[int, ...]) -> None:
        known = [number for number in numbers if number <= self._passage_count]
        self.removed += len(numbers) - len(known)
        if not known:
            if BEGUN.search(self.text[-_TAIL:]):
                self.text += f"{marker.blanks}\\{marker.raw}"
            return
        self.text += marker.blanks
        for number in known:
            start = len(self.text)
            self.text += f"[{number}]"
            self.citations += (Citation(number, start, len(self.text)),)

    def _first(self, citations: Iterable[Citation]) -> tuple[Citation, ...]:
        fresh: list[Citation] = []
        for citation in citations:
            if citation.number not in self._cited:
                self._cited.add(citation.number)
                fresh.append(citation)
        return tuple(fresh)
