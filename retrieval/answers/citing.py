"""Adds citations to the sentences that a language model wrote without one, while the answer is written. Pure."""

import re
from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import Final

from retrieval.answers.claims import Claim, sentences
from retrieval.llm.citations import find_citations

_STOPS: Final = ".!?\u2026\u3002\uff01\uff1f"
_CLOSERS: Final = "\"'\u201d\u2019\u00bb)*_"
#: The start of a line that may become a list item, a heading or a fence.
_OPENING: Final = re.compile(r"[ >\t]*+(?:[-*+\u2022\u2013]|\d{1,3}+[.)]?|#{1,6}|`{1,2}|~{1,2})?")
_FENCE: Final = re.compile(r"^[ >\t]*+(?:`{3}[^`\n]*+$|~{3})", re.MULTILINE)
_HEADINGS: Final = re.compile(r"(?:\s*+#{1,6}[ \t][^\n]*+\n)++")
_WORD: Final = re.compile(r"[^\W_]")
_ENDS_SENTENCE: Final = re.compile(rf"[{_STOPS}\n|]")
_MARKED: Final = re.compile(r"\[\d{1,3}\]\Z")
_MAY_BE_MARKER: Final = re.compile(r"(?:\[\d{0,3})?")  #: Nothing, or the beginning of a marker.
_MARKER_CHARACTERS: Final = 5
_LOOK_BACK_CHARACTERS: Final = 100  #: Maximum length of the held end of a text.


class Citer:
    """Passes on an answer's normalised text, and requests the citations of each sentence without a marker.

    The text does not depend on the division into pieces. Only the end of a sentence is held back, until the next word.
    """

    def __init__(self, passage_count: int) -> None:
        self._passage_count = passage_count
        self._text = ""
        self._sent = 0
        self._checked = 0  #: End of the last finished sentence.
        self._numbers: tuple[int, ...] = ()  #: The passages of the last cited sentence.
        self._fences = 0  #: Lines of the text after `_checked` that open or close code.

    @property
    def has_cited(self) -> bool:
        """Whether a sentence has a citation, its own or an added one."""
        return bool(self._numbers)

    def add(self, piece: str, *, is_last: bool = False) -> Generator[str | Claim, tuple[int, ...] | None, None]:
        """Yield the text that is final, and the sentences to match; send the numbers of their passages.

        The numbers of such a sentence are those of the sentence before it.
        """
        held = self._text[self._sent :]
        self._text += piece
        if is_last or _ENDS_SENTENCE.search(held) or _ENDS_SENTENCE.search(piece):
            while claim := self._next(is_last=is_last):
                self._numbers = claim.numbers if claim.is_citing else self._numbers
                place = self._place(claim)
                if (
                    not claim.is_stated
                    or claim.is_citing
                    or not _WORD.search(self._text, claim.start, claim.end)
                    or place < self._sent
                    or self._is_marked(place)
                    or self._is_header_row(claim)
                ):
                    continue
                if numbers := (yield replace(claim, numbers=self._numbers)):
                    self._numbers = numbers
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

    def _next(self, *, is_last: bool) -> Claim | None:
        """Return the next sentence that no further text can extend; None if there is none yet."""
        text = self._text[self._checked :]
        if not _WORD.search(text):
            return None
        fences = sum(1 for _ in _FENCE.finditer(text))
        # Code has no sentences, and the one before it is already finished.
        is_inside = fences % 2 == 1 and fences == self._fences
        self._fences = fences
        if is_inside and not is_last:
            return None
        for found in sentences(text, find_citations(text, self._passage_count)):
            if not is_last and _MAY_BE_MARKER.fullmatch(text[found.end :].strip()):
                break
            start, end = found.start + self._checked, found.end + self._checked
            self._checked, self._fences = end, 0
            return replace(found, start=start, end=end)
        # Sentences end before a blank line; those before it were returned already.
        blank = text.rfind("\n\n", 0, len(text.rstrip()))
        if blank >= 0 and sum(1 for _ in _FENCE.finditer(text, 0, blank)) % 2 == 0:
            self._checked += blank + 1
        elif headings := _HEADINGS.match(text):
            self._checked += headings.end() - 1
        return None

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
