"""Adds citations to the sentences that a language model wrote without one, while the answer is written. Pure."""

import re
from collections.abc import Generator, Iterator
from typing import Final

from retrieval.answers.claims import Claim, claims
from retrieval.llm.citations import find_citations

_STOPS: Final = ".!?\u2026\u3002\uff01\uff1f"
_CLOSERS: Final = "\"'\u201d\u2019\u00bb)*_"
#: The start of a line that may become a list item, a heading or a fence.
_OPENING: Final = re.compile(r"[ >\t]*+(?:[-*+\u2022\u2013]|\d{1,3}+[.)]?|#{1,6}|`{1,2}|~{1,2})?")
_ENDS_SENTENCE: Final = re.compile(rf"[{_STOPS}\n|]")
_MARKED: Final = re.compile(r"\[\d{1,3}\]\Z")
_MARKER_CHARACTERS: Final = 5
_LOOK_BACK_CHARACTERS: Final = 100  #: Maximum length of the held end of a text.


class Citer:
    """Passes on an answer's normalised text, and asks for the citations of each sentence without a marker.

    The text does not depend on the division into pieces. Only the end of a sentence is held back, until the next word.
    """

    def __init__(self, passage_count: int) -> None:
        self._passage_count = passage_count
        self._text = ""
        self._sent = 0
        self._checked = 0  #: End of the last sentence that was checked.

    def add(self, piece: str, *, is_last: bool = False) -> Generator[str | Claim, tuple[int, ...] | None, None]:
        """Yield the text that is final, and the sentences to match; send the numbers of their passages."""
        held = self._text[self._sent :]
        self._text += piece
        if is_last or _ENDS_SENTENCE.search(held) or _ENDS_SENTENCE.search(piece):
            for claim in self._finished(is_last=is_last):
                place = self._place(claim)
                numbers = (yield claim) if place >= self._sent and not self._is_marked(place) else None
                if numbers:
                    yield from self._until(place)
                    yield f" {''.join(f'[{number}]' for number in numbers)}"
        yield from self._until(len(self._text) if is_last else self._maybe_end())

    def _until(self, end: int) -> Iterator[str]:
        if end > self._sent:
            yield self._text[self._sent : end]
            self._sent = end

    def _maybe_end(self) -> int:
        """Return the start of the end of the text before which a citation may have to be inserted."""
        start = max(self._sent, len(self._text) - _LOOK_BACK_CHARACTERS)
        end = self._text[start:]
        before, line_break, line = end.rpartition("\n")
        if line_break and _OPENING.fullmatch(line):
            end = before
        end = end.rstrip()
        if end.endswith("|"):
            end = end[:-1].rstrip(" \t")
        unclosed = end.rstrip(_CLOSERS)
        place = start + len(unclosed.rstrip(_STOPS) if unclosed.endswith(tuple(_STOPS)) else end)
        # A sentence that ends with a marker gets no other.
        return len(self._text) if self._is_marked(place) else place

    def _is_marked(self, place: int) -> bool:
        return _MARKED.search(self._text, max(0, place - _MARKER_CHARACTERS), place) is not None

    def _finished(self, *, is_last: bool) -> Iterator[Claim]:
        """Yield the new sentences without a marker that no further text can extend."""
        for claim in claims(self._text, find_citations(self._text, self._passage_count)):
            if claim.start < self._checked or not (is_last or self._text[claim.end :].strip()):
                continue
            self._checked = claim.end
            if not claim.is_citing and not self._is_header_row(claim):
                yield claim

    def _is_header_row(self, claim: Claim) -> bool:
        before, _, line = self._text[: claim.start + 1].rpartition("\n")
        return line.lstrip(" >").startswith("|") and not before.rpartition("\n")[2].lstrip(" >").startswith("|")

    def _place(self, claim: Claim) -> int:
        """Return where a citation belongs: before the full stop, inside the last cell; -1 inside code."""
        text = self._text[claim.start : claim.end]
        if text.count("`") % 2:
            return -1
        end = text[:-1].rstrip(" \t") if text.endswith("|") else text.rstrip(_STOPS)
        return claim.start + len(end)
