"""The sentences of an answer, their positions and citations. Pure."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Final

from retrieval.answers.literals import Literal, literals_of
from retrieval.llm.types import Citation
from retrieval.text.markers import Scanner
from retrieval.text.sentences import LOOK_AROUND, continues

_LINE_START: Final = re.compile(r"[ >\t]*(?P<item>(?:[-*+•–]|\d{1,3}[.)])[ \t]+)?(?P<heading>#{1,6}[ \t])?")  # noqa: RUF001 -- a bullet
_TABLE_RULE: Final = re.compile(r"[|:\- \t]+")
_END: Final = re.compile(
    r"(?P<stop>(?<![.!?\u2026\u3002\uff01\uff1f])[.!?\u2026\u3002\uff01\uff1f]++[\"'\u201d\u2019\u00bb)*_]*+)"
    r"(?:[ \t]*\[[0-9]{1,3}\])*(?=\s|\Z)|[\u3002\uff01\uff1f](?:\[[0-9]{1,3}\])*"
)
_BLANKS: Final = re.compile(r"\s*")
_NOT_LINE_END: Final = re.compile(r"[^\n]")
#: Text to read before a full stop: an abbreviation, possibly with a citation marker.
_LOOK_BACK_CHARACTERS: Final = 64
_MARKER: Final = re.compile(r"(?<![ \t])[ \t]*+\[[0-9]{1,3}\]")
_EMPHASIS: Final = re.compile(r"[*`]+|(?<!\w)_+|(?<!_)_++(?!\w)")
#: Beginnings of comments and fences; small models write several fences in a row.
_NO_CODE: Final = ("# ", "// ", "```", "~~~")
_start: Final = attrgetter("start")
_NOT_CLAIMED: Final = ("?", "\uff1f", ":")


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence that an answer states."""

    start: int  #: Position in the answer with its markers, in code points, end exclusive.
    end: int
    text: str  #: Its words, without markers and emphasis.
    #: The passages that it cites, or those of a neighboring sentence of the same paragraph.
    numbers: tuple[int, ...] = ()
    is_citing: bool = False  #: Whether it has a marker itself.
    literals: tuple[Literal, ...] = ()

    @property
    def is_stated(self) -> bool:
        """Whether it states something; questions and "The steps:" do not."""
        return bool(self.text) and not self.text.endswith(_NOT_CLAIMED)


@dataclass(frozen=True, slots=True)
class CodeLine:
    """A line of a fenced code block."""

    start: int  #: Position in the answer, in code points, end exclusive.
    end: int
    text: str
    block: int  #: Index of its block in the answer, from 0.


def claims(text: str, citations: Sequence[Citation]) -> tuple[Claim, ...]:
    """Return the claims of an answer, in order; headings, code, questions and "The steps:" are no claims."""
    return tuple(claim for claim in sentences(text, citations) if claim.is_stated)


def sentences(text: str, citations: Sequence[Citation]) -> Iterator[Claim]:
    """Yield the sentences of an answer, in order, also those that state nothing; headings and code have none."""
    tokens = Scanner().feed(text, is_last=True)
    # Spaces in place of fenced code keep the positions.
    prose = "".join(
        _NOT_LINE_END.sub(" ", token.raw) if token.is_fenced else token.blanks + token.raw for token in tokens
    )
    citations = sorted(citations, key=_start)
    for start, end in _blocks(prose):
        yield from _citing_together([_claim(prose, *span, citations) for span in _sentences(prose, start, end)])


def code_lines(text: str) -> Iterator[CodeLine]:
    """Yield the lines of an answer's fenced code blocks, in order, without fences, blank lines and comments."""
    place, block, is_inside = 0, -1, False
    for token in Scanner().feed(text, is_last=True):
        start = place + len(token.blanks)
        place = start + len(token.raw)
        line = token.raw.strip()
        if not token.is_fenced:
            is_inside = False
        elif not is_inside:
            block, is_inside = block + 1, True
        elif line and not line.startswith(_NO_CODE):
            yield CodeLine(
                start + len(token.raw) - len(token.raw.lstrip()), start + len(token.raw.rstrip()), line, block
            )


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    place, open_from = 0, -1
    for line in text.splitlines(keepends=True):
        found = _LINE_START.match(line)
        start = found.end() if found else 0
        content = line[start:].strip()
        is_heading = bool(found and found["heading"])
        begins = not content or is_heading or content.startswith("|") or bool(found and found["item"])
        if begins and open_from >= 0:
            yield open_from, place
            open_from = -1
        if content and not is_heading and not _TABLE_RULE.fullmatch(content) and open_from < 0:
            open_from = place + start
        place += len(line)
    if open_from >= 0:
        yield open_from, place


def _sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    begin = start
    for found in _END.finditer(text, start, end):
        stop = found.end("stop") if found["stop"] else found.end()
        before = _MARKER.sub("", text[max(begin, stop - _LOOK_BACK_CHARACTERS) : stop])
        blanks = _BLANKS.match(text, found.end(), end)
        following = blanks.end() if blanks else found.end()
        if continues(before, text[following : min(following + LOOK_AROUND, end)]):
            continue
        yield begin, found.end()
        begin = found.end()
    if text[begin:end].strip():
        yield begin, end


def _claim(text: str, start: int, end: int, citations: Sequence[Citation]) -> Claim:
    sentence = text[start:end]
    start += len(sentence) - len(sentence.lstrip())
    end -= len(sentence) - len(sentence.rstrip())
    first, last = (bisect_left(citations, place, key=_start) for place in (start, end))
    numbers = dict.fromkeys(it.number for it in citations[first:last])
    words = _MARKER.sub("", text[start:end])
    return Claim(
        start,
        end,
        _EMPHASIS.sub("", words).strip(" \t|"),
        tuple(numbers),
        is_citing=bool(numbers),
        literals=literals_of(words),
    )


def _citing_together(found: list[Claim]) -> Iterator[Claim]:
    following: list[tuple[int, ...]] = []
    numbers: tuple[int, ...] = ()
    for claim in reversed(found):
        numbers = claim.numbers or numbers
        following.append(numbers)
    before: tuple[int, ...] = ()
    for claim, after in zip(found, reversed(following), strict=True):
        before = claim.numbers or before
        yield replace(claim, numbers=after or before)
