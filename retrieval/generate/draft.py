"""An answer while it is being written: what may be sent of it, and whom it cites. Pure."""

from collections.abc import Iterable

from retrieval.generate.citations import find_citations, sendable_length, settled_citations
from retrieval.generate.types import Citation


class Draft:
    """Gathers pieces; hands out text that never ends inside a marker, and each passage's first citation."""

    def __init__(self, passage_count: int) -> None:
        self.text = ""
        self._passage_count = passage_count
        self._sent = 0
        self._cited: set[int] = set()

    def add(self, piece: str) -> tuple[str, tuple[Citation, ...]]:
        """Return the text that can be sent now, and the citations that are new and certain."""
        self.text += piece
        fresh = self._new(settled_citations(self.text, self._passage_count))
        return self._send(sendable_length(self.text)), fresh

    def finish(self) -> tuple[str, tuple[Citation, ...]]:
        """Return the rest of the text and of the citations."""
        return self._send(len(self.text)), self._new(find_citations(self.text, self._passage_count))

    def _send(self, end: int) -> str:
        start, self._sent = self._sent, max(self._sent, end)
        return self.text[start : self._sent]

    def _new(self, citations: Iterable[Citation]) -> tuple[Citation, ...]:
        fresh: list[Citation] = []
        for citation in citations:
            if citation.number not in self._cited:
                self._cited.add(citation.number)
                fresh.append(citation)
        return tuple(fresh)
