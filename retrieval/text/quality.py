"""The quality of a chunk: the share of its characters that is content and not boilerplate.

Each part is the share of characters of one kind of boilerplate; no character counts twice. The rules need several
signs, because a chunk that is dropped wrongly costs an answer and one that stays costs a place: a menu needs several
known words, a cookie banner must request consent. Repeated texts are only known when the documents are stored; the
store adds that part.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Final

from retrieval.text import boilerplate

_BULLET: Final = re.compile("^[\\s>*+\u2022\u25aa\u25e6\u2013\u2014-]+")
#: Separators of the entries of a bar: | \u2022 \u00b7 and, in trails, > \u00bb \u203a \u2192 /.
_SEPARATORS: Final = re.compile(
    "(?<!\\s)\\s++(?:[|\u2022\u00b7\u00bb\u203a\u2192>/\\\\]++\\s++|[|\u00bb\u203a\u2022\u00b7]\\s*+)"
    "|[|\u00bb\u203a\u2022\u00b7]\\s*+"
)
_TRAILS: Final = re.compile("\\s[>\u00bb\u203a/\u2192]\\s|[\u00bb\u203a]")
_ENTRY_TRIM: Final = " \t\u00ab\u00bb\u2039\u203a\u2190\u2192\u2191\u2193<>|\u00b7\u2022*_[](){}.:-\u2013\u2014"
_MAX_ENTRY_WORDS: Final = 4
_MIN_ENTRIES: Final = 3
_MIN_LINES: Final = 4
_KNOWN_SHARE: Final = 1 / 3
_SENTENCE_END: Final = re.compile(r"[.!?;:,]['\")]?$")

#: An entry of a book's index names a place ("vacuum, Routine Vacuuming") or another entry; one of contents is numbered.
_POINTS_ELSEWHERE: Final = re.compile(r", |\(see |^(?:\d+|[A-Z])(?:\.\d+)+\.? ")
_MAX_INDEX_WORDS: Final = 12
_MIN_INDEX_LINES: Final = 15
_INDEX_SHARE: Final = 0.6  #: Least share of the lines that point elsewhere, and of neighbours in alphabetical order.

_ADDRESS: Final = re.compile(
    r"(?:https?://|ftp://|www\.)[^\s<>\"')\]]+|(?<![\w.+-])[\w.+-]++@[\w-]++\.[\w.-]*\w", re.IGNORECASE
)
_MIN_ADDRESSES: Final = 5  #: Fewer addresses are content.
_DESCRIBED_SHARE: Final = 0.5

_WORD: Final = re.compile(r"\S+")
_PUNCTUATION: Final = ".,;:!?()[]\"'\u201c\u201d\u2018\u2019"
_LATIN_LETTERS: Final = re.compile(r"[a-zß-öø-ÿœ]+")
_VOWELS: Final = frozenset("aeiouyæœø")
_MIN_CONSONANTS: Final = 5  #: Shorter words without a vowel exist in many languages: "pst", "krk", "nth".
#: Characters that scanners make of dirt, and the replacement of undecodable bytes.
_DIRT: Final = frozenset("~^`\u00a6\u00ac\u00a8\u00b8\u00b4\ufffd")
#: A symbol between two letters, which no language has, and characters that no font shows.
_BROKEN: Final = re.compile(
    "[^\\W\\d_][~^|!\u00a6\u00ac\u00a4\u00a8\u00b8\u00a5\u00a3\u00a2\u25a0\u25a1\u2666\u00b6][^\\W\\d_]|\ufffd|[\ue000-\uf8ff]"
)
_MIN_LONE_LETTERS: Final = 8  #: Spaced letters, "T h i s", more of them in a row than in a list of variables.
#: Signs of code, paths, formulas and markup; the words of such lines are not checked.
_CODE_SIGNS: Final = re.compile(r"[{}=;\\$<>@#]|::|->|\w\(|\(\)|\w_\w|\w/\w|\]\[|\w\.\w+\(")
_NOISE_FROM: Final = 0.2  #: Share of noisy words where damage begins, and where the text is unreadable.
_NOISE_FULL: Final = 0.6
_MIN_WORDS: Final = 12  #: Fewer words are not enough to detect a damaged scan.

_MIN_PART: Final = 0.01


@dataclass(frozen=True, slots=True)
class ChunkQuality:
    """The quality of a chunk and its boilerplate by kind."""

    value: float  #: 1 - the parts, at least 0.
    #: Share of the characters by kind: navigation, legal, links, noise, and "repeated" once stored.
    parts: Mapping[str, float] = field(default_factory=dict)


def quality_of(text: str) -> ChunkQuality:
    """Return the quality of one chunk's text, 0 to 1, from the text alone."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    menus = navigation_lines(lines)
    kinds = ["navigation" if place in menus else "legal" if is_legal(line) else "" for place, line in enumerate(lines)]
    sizes: Counter[str] = Counter()
    for kind, line in zip(kinds, lines, strict=True):
        sizes[kind] += len(line)
    left = [line for kind, line in zip(kinds, lines, strict=True) if not kind]
    total = sizes.total() or 1
    links = link_characters(left)
    shares = {
        "navigation": sizes["navigation"] / total,
        "legal": sizes["legal"] / total,
        "links": links / total,
        "noise": noise(left) * (sizes[""] - links) / total,
    }
    parts = {name: round(share, 3) for name, share in shares.items() if share >= _MIN_PART}
    return ChunkQuality(max(0.0, round(1.0 - sum(parts.values()), 3)), parts)


def navigation_lines(lines: Sequence[str]) -> frozenset[int]:
    """Return the indices of the lines that are menus, trails, page frames, tables of contents or a book's index."""
    single = {place for place, line in enumerate(lines) if is_navigation(line)}
    return frozenset(single.union(*_menus(lines), *_indexes(lines)))


def is_navigation(line: str) -> bool:
    """Return whether one line alone is a menu bar, a trail, a line of a page's frame or of a table of contents."""
    is_contents = len(line) <= boilerplate.MAX_CONTENTS_CHARACTERS and boilerplate.CONTENTS_END.search(line)
    if is_contents or line.casefold() in boilerplate.FRAME_LINES:
        return True
    entries = [entry for part in _SEPARATORS.split(line) if (entry := _entry(part))]
    known = sum(map(_is_known, entries))
    if _TRAILS.search(line) and len(entries) > 1 and _is_known(entries[0]) and _are_short(entries):
        return entries[0].casefold() in boilerplate.TRAIL_STARTS
    if len(entries) >= _MIN_ENTRIES:
        return _are_short(entries) and known > 1 and known >= _KNOWN_SHARE * len(entries)
    words = line.casefold().split()
    return len(words) >= _MIN_ENTRIES and boilerplate.PAGER_WORDS.issuperset(words)


def _menus(lines: Sequence[str]) -> Iterator[set[int]]:
    """Yield the indices of consecutive short lines that are a menu together."""
    could_be_entry = [_are_short([_entry(line)]) and not _SENTENCE_END.search(line) for line in lines]
    for is_entry, run in groupby(range(len(lines)), could_be_entry.__getitem__):
        places = list(run)
        known = sum(_is_known(_entry(lines[place])) for place in places)
        enough = len(places) >= _MIN_LINES and known >= _MIN_ENTRIES
        if is_entry and enough and known >= _KNOWN_SHARE * len(places):
            yield set(places)


def _indexes(lines: Sequence[str]) -> Iterator[set[int]]:
    """Yield the indices of consecutive short list items that are entries of a book's index or contents."""
    items = [bool(_BULLET.match(line)) and _is_index_entry(_BULLET.sub("", line)) for line in lines]
    for is_item, run in groupby(range(len(lines)), items.__getitem__):
        places = list(run)
        if not is_item or len(places) < _MIN_INDEX_LINES:
            continue
        entries = [_BULLET.sub("", lines[place]).casefold() for place in places]
        pointing = sum(bool(_POINTS_ELSEWHERE.search(_BULLET.sub("", lines[place]))) for place in places)
        ordered = sum(before <= after for before, after in pairwise(entries))
        if min(pointing, ordered) >= _INDEX_SHARE * len(places):
            yield set(places)


def _is_index_entry(text: str) -> bool:
    return len(text.split()) <= _MAX_INDEX_WORDS and not _SENTENCE_END.search(text)


def _entry(text: str) -> str:
    return _BULLET.sub("", text).strip(_ENTRY_TRIM)


def _is_known(entry: str) -> bool:
    return entry.casefold() in boilerplate.MENU_WORDS


def _are_short(entries: Sequence[str]) -> bool:
    return all(0 < len(entry.split()) <= _MAX_ENTRY_WORDS for entry in entries)


def is_legal(line: str) -> bool:
    """Return whether a line is a copyright, a cookie banner, an e-mail disclaimer, a page number or a software name."""
    if len(line) <= boilerplate.MAX_PAGE_CHARACTERS and boilerplate.PAGE_LINE.fullmatch(line):
        return True
    if len(line) <= boilerplate.MAX_MADE_WITH_CHARACTERS and boilerplate.MADE_WITH.match(line):
        return True
    is_short = len(line.split(maxsplit=boilerplate.MAX_COPYRIGHT_WORDS)) <= boilerplate.MAX_COPYRIGHT_WORDS
    if is_short and (boilerplate.COPYRIGHT.search(line) or boilerplate.RIGHTS_RESERVED.search(line)):
        return True
    lowered = line.casefold()
    if "cookies" in lowered:
        return bool(boilerplate.COOKIES_USED.search(line) and boilerplate.COOKIES_ASKED.search(line))
    is_mail = len(line) >= boilerplate.MIN_DISCLAIMER_CHARACTERS and any(
        hint in lowered for hint in boilerplate.MAIL_HINTS
    )
    return is_mail and bool(boilerplate.MAIL_SELF.search(line) and boilerplate.MAIL_DISCLAIMED.search(line))


def link_characters(lines: Sequence[str]) -> float:
    """Return the number of characters in addresses, half of it on lines that describe them; 0 for a few."""
    found = [(line, [match.group() for match in _ADDRESS.finditer(line)]) for line in lines]
    if sum(len(addresses) for _, addresses in found) < _MIN_ADDRESSES:
        return 0.0
    weights = (_DESCRIBED_SHARE if any(map(str.isalpha, _ADDRESS.sub(" ", line))) else 1.0 for line, _ in found)
    return sum(weight * sum(map(len, addresses)) for weight, (_, addresses) in zip(weights, found, strict=True))


def noise(lines: Sequence[str]) -> float:
    """Return the damage of Latin words as after a bad scan, 0 (clean) to 1; none in code and tables of numbers."""
    words = [word for line in lines if not _CODE_SIGNS.search(_ADDRESS.sub("", line)) for word in _WORD.findall(line)]
    if len(words) < _MIN_WORDS:
        return 0.0
    # Long rows of single letters are noise as well.
    rows = (list(row) for is_lone, row in groupby(words, lambda word: len(word) == 1 and word.isalpha()) if is_lone)
    latin = (sum(map(str.isascii, row)) for row in rows)
    share = (sum(map(is_noisy, words)) + sum(count for count in latin if count >= _MIN_LONE_LETTERS)) / len(words)
    return min(1.0, max(0.0, (share - _NOISE_FROM) / (_NOISE_FULL - _NOISE_FROM)))


def is_noisy(word: str) -> bool:
    """Return whether a word looks like a scanning error: a symbol inside, only symbols, or many consonants."""
    if not word.isalnum() and (_BROKEN.search(word) or (word != "|" and _DIRT.issuperset(word))):
        return True
    letters = word.strip(_PUNCTUATION)
    if len(letters) < _MIN_CONSONANTS or not _VOWELS.isdisjoint(letters) or letters.isupper():
        return False
    lowered = letters.lower()
    return bool(_LATIN_LETTERS.fullmatch(lowered)) and _VOWELS.isdisjoint(unicodedata.normalize("NFD", lowered))
