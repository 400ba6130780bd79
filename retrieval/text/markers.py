"""Splitting an answer into citation markers and other text, also while it is being written. Pure.

A marker names passages by number: `[1]`, `[1, 2]`, `[1 2]`, `[1, 2, and 3]`, `[2-4]`, `[[3]]`, `【3】`, `［3］`, or
with pages: `[1, p. 3]`. Code, escaped brackets and the text of a link are no markers.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_DIGITS: Final = "0-9\uff10-\uff19"
_COMMA: Final = "[,;\uff0c\u3001]"
_DASH: Final = "[-\u2013\u2014]"
_NUMBER: Final = f"[1-9\uff11-\uff19][{_DIGITS}]{{0,2}}"
_AND: Final = ("and", "und", "et", "&")
_PAGE: Final = ("p.", "p", "pp.", "pp", "page", "pages", "S.", "Seite", "Seiten")
_PAGES: Final = rf" ?{_COMMA}? ?(?:pp?\.?|pages?|S\.|Seiten?) ?[{_DIGITS}]{{1,4}}(?: ?{_DASH} ?[{_DIGITS}]{{1,4}})?"
_ITEM: Final = f"{_NUMBER}(?: ?{_DASH} ?{_NUMBER})?(?:{_PAGES})?"
_BETWEEN: Final = f"(?: ?{_COMMA} ?(?:(?:{'|'.join(_AND)}) )?| (?:{'|'.join(_AND)}) | )"
_LIST: Final = f" ?{_ITEM}(?:{_BETWEEN}{_ITEM})* ?"
#: Some services add text in the corner brackets: 【3†source】.
_FORMS: Final = (
    rf"\[\[{_LIST}\]\]",
    rf"\[{_LIST}\]",
    rf"\u3010{_LIST}(?:\u2020[^\u3010\u3011\n]*)?\u3011",
    rf"\uff3b{_LIST}\uff3d",
)
MARKER: Final = re.compile("|".join(_FORMS))
_WORDS: Final = (*_AND, *_PAGE)
_WHOLE_WORD: Final = rf"(?<![A-Za-z.])(?:{'|'.join(map(re.escape, _WORDS))})(?![A-Za-z.])"
_PART_OF_WORD: Final = "|".join(sorted({word[:size] for word in _WORDS if word != "&" for size in range(1, len(word))}))
BEGUN: Final = re.compile(
    rf"(?:\[{{1,2}}|\u3010|\uff3b)(?:[{_DIGITS} ,;\uff0c\u3001\-\u2013\u2014]|{_WHOLE_WORD})*"
    rf"(?:{_PART_OF_WORD})?(?:\u2020[^\u3010\u3011\n]*)?\]?\Z"
)
_ITEMS: Final = re.compile(rf"({_NUMBER})(?: ?{_DASH} ?({_NUMBER}))?")
_NOT_NUMBERS: Final = re.compile(f"\u2020.*|{_PAGES}")

_OPENING: Final = "[\u3010\uff3b"
_PLAIN: Final = re.compile(rf"[^`\\\n \t{re.escape(_OPENING)}]+")
_BLANKS: Final = re.compile(r"[ \t]*")
_TICKS: Final = re.compile("`+")
_QUOTED: Final = r"[ >\t]*+"
_FENCE: Final = re.compile(rf"{_QUOTED}(?P<fence>`{{3,}}(?=[^`\n]*$)|~{{3,}})[^\n]*$", re.MULTILINE)
_FENCE_BEGUN: Final = re.compile(rf"{_QUOTED}(?:`{{1,2}}|`{{3,}}+[^`\n]*+|~{{1,2}}|~{{3,}}+[^\n]*+)?\Z")


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of an answer's text."""

    raw: str
    numbers: tuple[int, ...] | None = None  #: The numbers of a marker, in order; None for other text.
    blanks: str = ""
    is_fenced: bool = False  #: Whether it is in a fenced code block, including its fences.


class Scanner:
    """Yields each token as soon as no further text can change it.

    The tokens of a text do not depend on how it was fed, except that text other than markers may be split.
    """

    def __init__(self) -> None:
        self._text = ""
        self._place = 0
        self._is_line_start = True
        self._end = -1
        self._fence = ""

    def feed(self, piece: str, *, is_last: bool = False) -> Iterator[Token]:
        """Yield the tokens that are certain now; after the last piece, all that remain."""
        self._text = self._text[self._place :] + piece
        self._place, self._end = 0, -1
        while self._place < len(self._text):
            token = self._next(is_last=is_last)
            if token is None:
                return
            self._place += len(token.blanks) + len(token.raw)
            self._is_line_start = token.raw.endswith("\n")
            yield token

    def _next(self, *, is_last: bool) -> Token | None:
        if self._fence:
            if self._is_line_start:
                sign, minimum = re.escape(self._fence[0]), len(self._fence)
                end = re.compile(rf"{_QUOTED}{sign}{{{minimum},}}[ \t]*(?=\n|\Z)").match(self._text, self._place)
                may_end = re.compile(rf"{_QUOTED}{sign}*[ \t]*\Z").match(self._text, self._place)
                if may_end and not is_last:
                    return None
                if end:
                    self._fence = ""
                    return Token(end[0], is_fenced=True)
            return Token(self._text[self._place : self._line_end() + 1], is_fenced=True)
        if self._is_line_start:
            begun = _FENCE_BEGUN.match(self._text, self._place)
            found = _FENCE.match(self._text, self._place)
            if begun and not is_last:
                return None
            if found:
                self._fence = found["fence"]
                return Token(found[0], is_fenced=True)
        return self._in_line(is_last=is_last)

    def _in_line(self, *, is_last: bool) -> Token | None:
        sign = self._text[self._place]
        if sign == "\n":
            return Token(sign)
        if sign == "\\":
            escaped = self._text[self._place + 1 : self._place + 2]
            if not escaped and not is_last:
                return None
            return Token("\\" if escaped == "\n" else "\\" + escaped)
        if sign == "`":
            return self._code(is_last=is_last)
        if sign in _OPENING or sign in " \t":
            return self._bracket(is_last=is_last)
        return Token(self._match(_PLAIN))

    def _code(self, *, is_last: bool) -> Token | None:
        ticks = self._match(_TICKS)
        inside, line_end = self._place + len(ticks), self._line_end()
        close = re.compile(rf"(?<!`){ticks}(?!`)").search(self._text, inside, line_end)
        end = close.end() if close else inside
        if max(end, line_end if not close else 0) == len(self._text) and not is_last:
            return None
        return Token(self._text[self._place : end])

    def _bracket(self, *, is_last: bool) -> Token | None:
        """Return a marker with the blanks before it, or blanks or a bracket without a marker."""
        blanks = self._match(_BLANKS)
        start = self._place + len(blanks)
        opening = self._text[start : start + 1]
        marker = MARKER.match(self._text, start)
        after = self._text[marker.end() : marker.end() + 1] if marker else ""
        is_open = not opening or (not after if marker else BEGUN.match(self._text, start) is not None)
        if is_open and not is_last:
            return None
        if marker and not (after == "(" and opening == "["):
            numbers: list[int] = []
            for found in _ITEMS.finditer(_NOT_NUMBERS.sub("", marker[0])):
                first, last = int(found[1]), int(found[2] or found[1])
                numbers += range(first, last + 1) if first <= last else (first, last)
            return Token(marker[0], tuple(dict.fromkeys(numbers)), blanks)
        if marker:
            return Token(blanks + marker[0])
        return Token(blanks or opening)

    def _match(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._place)
        return found[0] if found else ""

    def _line_end(self) -> int:
        if self._end < self._place:
            end = self._text.find("\n", self._place)
            self._end = len(self._text) if end < 0 else end
        return self._end
