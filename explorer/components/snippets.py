"""Marks the words of a text that match a query, and chooses the best snippet.

It returns segments, not HTML; templates escape each of them.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from django.conf import settings

from corecube.scope import ConnectionFacts
from retrieval.engine.types import Hit, TermMatch
from retrieval.engine.words import initials, stemmer

Stem = Callable[[str], str]  #: Returns the lexeme of a lower-case word, by the stemmer of the query.

SNIPPET_CHARACTERS: Final = 240  #: Characters of a snippet, about three lines of a hit.
_LEAD_CHARACTERS: Final = 80  #: How far before the first match a snippet may start, to reach the start of a sentence.

_WORD: Final = re.compile(r"[^\W_]+")  #: Letters and digits, as the text search parser splits words.
_PARAGRAPHS: Final = re.compile(r"\n\s*\n")
_BREAK: Final = " \N{MIDDLE DOT} "  #: Separates paragraphs on one line.
_MAX_PATTERNS: Final = 256
_SENTENCE_END: Final = re.compile(r"(?:[.!?:]\s+|\N{MIDDLE DOT}\s+)+")


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of text, and whether it matches the query."""

    text: str
    matched: bool = False


@dataclass(frozen=True, slots=True)
class _Span:
    start: int
    end: int
    lexeme: str


def highlight(text: str, lexemes: Iterable[str], *, stem: Stem) -> tuple[Segment, ...]:
    """Return the text in segments, the matching words marked; joined, they are the text."""
    return tuple(_segments(text, _matches(text, lexemes, stem)))


def snippet(
    text: str, matches: Sequence[TermMatch], *, stem: Stem, characters: int = SNIPPET_CHARACTERS
) -> tuple[Segment, ...]:
    """Return the part of the text that matches the query best, in segments, on one line.

    Of all parts that start shortly before a match, the one with the highest idf sum of distinct lexemes wins, then the
    earliest. Without a match it is the start of the text. A cut end has an ellipsis.
    """
    flat = one_line(text)
    found = _matches(flat, [match.lexeme for match in matches], stem)
    start = _best_start(flat, found, {match.lexeme: match.idf for match in matches}, characters)
    end = _end_of_piece(flat, start, characters)
    inside = [
        _Span(span.start - start, span.end - start, span.lexeme)
        for span in found
        if span.start >= start and span.end <= end
    ]
    pieces = tuple(_segments(flat[start:end].rstrip(), inside))
    before = (Segment("… "),) if start else ()
    after = (Segment(" …"),) if end < len(flat) else ()
    return (*before, *pieces, *after)


def one_line(text: str) -> str:
    """Return the text on one line, with a middle dot between paragraphs."""
    paragraphs = (" ".join(paragraph.split()) for paragraph in _PARAGRAPHS.split(text))
    return _BREAK.join(filter(None, paragraphs))


def _matches(text: str, lexemes: Iterable[str], stem: Stem) -> list[_Span]:
    """Return the positions of the lexemes in order, without overlaps; the longer of two at one position."""
    # Without the minus that the parser reads before the number of "RIME-4107".
    wanted = {lexeme.lstrip("-") or lexeme: lexeme for lexeme in lexemes}
    spans = list(_word_spans(text, wanted, stem))
    for bare, lexeme in wanted.items():
        if not _WORD.fullmatch(bare):
            # A lexeme with signs in it (a path, an address, a version) matches literally.
            pattern = re.compile(rf"(?<!\w){re.escape(bare)}(?!\w)", re.IGNORECASE)
            spans.extend(_Span(found.start(), found.end(), lexeme) for found in pattern.finditer(text))
    separate: list[_Span] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if not separate or span.start >= separate[-1].end:
            separate.append(span)
    return separate


def _word_spans(text: str, wanted: Mapping[str, str], stem: Stem) -> Iterator[_Span]:
    """Yield the words whose stem is a lexeme. Only those with one of the first letters of these are stemmed."""
    letters = initials(wanted)
    for word in _words_from(letters).finditer(text) if letters else ():
        if (stemmed := stem(word.group().lower())) in wanted:
            yield _Span(word.start(), word.end(), wanted[stemmed])


@lru_cache(maxsize=_MAX_PATTERNS)
def _words_from(letters: str) -> re.Pattern[str]:
    """Return the pattern of words that start with one of some letters, in either case."""
    return re.compile(rf"(?<![^\W_])[{re.escape(letters)}][^\W_]*", re.IGNORECASE)


def _segments(text: str, spans: Iterable[_Span]) -> Iterator[Segment]:
    place = 0
    for span in spans:
        if span.start > place:
            yield Segment(text[place : span.start])
        yield Segment(text[span.start : span.end], matched=True)
        place = span.end
    if place < len(text):
        yield Segment(text[place:])


def _best_start(text: str, spans: Sequence[_Span], weights: Mapping[str, float], characters: int) -> int:
    best, best_weight = 0, 0.0
    starts, ends = [span.start for span in spans], [span.end for span in spans]
    for span in spans:
        start = _start_before(text, span.start, min(_LEAD_CHARACTERS, characters // 3))
        inside = spans[bisect_left(starts, start) : bisect_right(ends, start + characters)]
        weight = sum(weights[lexeme] for lexeme in {other.lexeme for other in inside})
        if weight > best_weight + 1e-9:
            best, best_weight = start, weight
    # A part at the end of the text can start earlier.
    room = len(text) - characters
    return min(best, _start_before(text, best, best - room)) if room < best else best


def _start_before(text: str, place: int, lead: int) -> int:
    """Return a good start: that of the text, else of the first sentence, else of a word, within the lead."""
    earliest = max(0, place - lead)
    if earliest == 0:
        return 0
    begins = [end.end() for end in _SENTENCE_END.finditer(text, earliest, place)]
    if begins:
        return begins[0]
    blank = text.find(" ", earliest, place)
    return blank + 1 if blank >= 0 else place


def _end_of_piece(text: str, start: int, characters: int) -> int:
    """Return the end of a part: that of the text, else of the last complete word."""
    limit = start + characters
    if limit >= len(text):
        return len(text)
    blank = text.rfind(" ", start, limit + 1)
    return blank if blank > start else limit


def hit_text(
    hit: Hit, connection: ConnectionFacts, *, characters: int = SNIPPET_CHARACTERS
) -> tuple[tuple[Segment, ...], tuple[Segment, ...]]:
    """Return a hit's title and snippet in segments; words match by the stemmer of the connection's language."""
    stem = stemmer(connection.language or settings.CORECUBE_TEXT_SEARCH_CONFIG)
    title = highlight(hit.chunk.title, [match.lexeme for match in hit.matches], stem=stem)
    return title, snippet(hit.chunk.text, hit.matches, stem=stem, characters=characters)
