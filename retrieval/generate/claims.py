"""The sentences of an answer, where they stand and whom they cite. Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from retrieval.generate.markers import Scanner
from retrieval.generate.types import Citation
from retrieval.generate.units import goes_on

_LINE_START: Final = re.compile(r"[ >\t]*(?P<item>(?:[-*+•–]|\d{1,3}[.)])[ \t]+)?(?P<heading>#{1,6}[ \t])?")  # noqa: RUF001 -- a bullet
_TABLE_RULE: Final = re.compile(r"[|:\- \t]+")
_END: Final = re.compile(
    r"""[.!?\u2026\u3002\uff01\uff1f]+["'\u201d\u2019\u00bb)*_]*(?:[ \t]*\[[0-9]{1,3}\])*(?=\s|\Z)"""
    r"|[\u3002\uff01\uff1f](?:\[[0-9]{1,3}\])*"
)
_MARKER: Final = re.compile(r"[ \t]*\[[0-9]{1,3}\]")
_EMPHASIS: Final = re.compile(r"[*`]+|(?<!\w)_+|_+(?!\w)")
_NOT_CLAIMED: Final = ("?", "\uff1f", ":")


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence that an answer states."""

    #: Place in the answer, in code points, end exclusive, its markers included.
    start: int
    end: int
    #: Its words, without markers and emphasis.
    text: str
    #: The passages that it cites, or those of the sentence that cites for it in the same paragraph.
    numbers: tuple[int, ...] = ()


def claims(text: str, citations: Sequence[Citation]) -> tuple[Claim, ...]:
    """Return what an answer states, in order; headings, code, questions and "The steps:" state nothing."""
    prose = _without_code(text)
    return tuple(
        claim
        for start, end in _blocks(prose)
        for claim in _citing_together([_claim(prose, *span, citations) for span in _sentences(prose, start, end)])
        if claim.text and not claim.text.endswith(_NOT_CLAIMED)
    )


def _without_code(text: str) -> str:
    """Return the text with blanks in the place of fenced code."""
    tokens = Scanner().feed(text, is_last=True)
    return "".join(
        re.sub(r"[^\n]", " ", token.raw) if token.is_fenced else token.blanks + token.raw for token in tokens
    )


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each paragraph, list item and table row begins and ends, what marks it not counted."""
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
    """Yield where each sentence of a block begins and ends; the markers behind its full stop belong to it."""
    begin = start
    for found in _END.finditer(text, start, end):
        if goes_on(_MARKER.sub("", text[begin : found.end()]), text[found.end() : end].lstrip()):
            continue
        yield begin, found.end()
        begin = found.end()
    if text[begin:end].strip():
        yield begin, end


def _claim(text: str, start: int, end: int, citations: Sequence[Citation]) -> Claim:
    sentence = text[start:end]
    start += len(sentence) - len(sentence.lstrip())
    end -= len(sentence) - len(sentence.rstrip())
    numbers = dict.fromkeys(it.number for it in citations if start <= it.start < end)
    return Claim(start, end, _EMPHASIS.sub("", _MARKER.sub("", text[start:end])).strip(" \t|"), tuple(numbers))


def _citing_together(found: list[Claim]) -> Iterator[Claim]:
    """Yield a block's claims; one without a marker shares those of the next that has any, else of the one before."""
    for place, claim in enumerate(found):
        near = (it.numbers for it in (*found[place:], *reversed(found[:place])) if it.numbers)
        yield replace(claim, numbers=next(near, ()))
