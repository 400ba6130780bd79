"""How much of a chunk is content and not boilerplate.

Every part is the share of the chunk's characters that it takes for boilerplate; no character counts twice, and the
quality is what is left. The rules ask for several signs before they speak, since a chunk that is dropped wrongly costs
an answer and one that stays costs a place: a menu needs several of its words, a cookie banner has to ask for something.
What stands in many documents is only known when they are stored; that part is added by the store.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from retrieval.text import boilerplate

_BULLET: Final = re.compile("^[\\s>*+\u2022\u25aa\u25e6\u2013\u2014-]+")
#: What stands between the entries of a bar: | \u2022 \u00b7 and, in trails, > \u00bb \u203a \u2192 /.
_SEPARATORS: Final = re.compile(
    "(?<!\\s)\\s++(?:[|\u2022\u00b7\u00bb\u203a\u2192>/\\\\]++\\s++|[|\u00bb\u203a\u2022\u00b7]\\s*+)"
    "|[|\u00bb\u203a\u2022\u00b7]\\s*+"
)
_TRAILS: Final = re.compile("\\s[>\u00bb\u203a/\u2192]\\s|[\u00bb\u203a]")
_ENTRY_TRIM: Final = " \t\u00ab\u00bb\u2039\u203a\u2190\u2192\u2191\u2193<>|\u00b7\u2022*_[](){}.:-\u2013\u2014"
_MAX_ENTRY_WORDS: Final = 4
_MIN_ENTRIES: Final = 3
#: Entries in a row that may make a menu without bars between them.
_MIN_LINES: Final = 4
#: Share of a menu's entries that must be known words of menus.
_KNOWN_SHARE: Final = 1 / 3
_SENTENCE_END: Final = re.compile(r"[.!?;:,]['\")]?$")

_ADDRESS: Final = re.compile(
    r"(?:https?://|ftp://|www\.)[^\s<>\"')\]]+|(?<![\w.+-])[\w.+-]++@[\w-]++\.[\w.-]*\w", re.IGNORECASE
)
#: A few addresses are what somebody asked for.
_MIN_ADDRESSES: Final = 5
#: What an address costs on a line that says what it leads to.
_DESCRIBED_SHARE: Final = 0.5

_WORD: Final = re.compile(r"\S+")
_PUNCTUATION: Final = ".,;:!?()[]\"'\u201c\u201d\u2018\u2019"
_LATIN_LETTERS: Final = re.compile(r"[a-zß-öø-ÿœ]+")
_VOWELS: Final = frozenset("aeiouyæœø")
#: Words shorter than this have no vowel in many languages: "pst", "krk", "nth".
_MIN_CONSONANTS: Final = 5
#: Signs that scanners make of dirt, and what undecodable bytes become; bullets, currencies and quotes are none.
_DIRT: Final = frozenset("~^`\u00a6\u00ac\u00a8\u00b8\u00b4\ufffd")
#: A sign between two letters where no language has one, and characters that no font shows.
_BROKEN: Final = re.compile(
    "[^\\W\\d_][~^|!\u00a6\u00ac\u00a4\u00a8\u00b8\u00a5\u00a3\u00a2\u25a0\u25a1\u2666\u00b6][^\\W\\d_]|\ufffd|[\ue000-\uf8ff]"
)
#: Letters apart, "T h i s", and more of them in a row than a list of variables has.
_MIN_LONE_LETTERS: Final = 8
#: What speaks of program text, paths, formulas and markup; such lines are not judged by their words.
_CODE_SIGNS: Final = re.compile(r"[{}=;\\$<>@#]|::|->|\w\(|\(\)|\w_\w|\w/\w|\]\[|\w\.\w+\(")
#: Noise from this share of the words on is damage; at the other the text is beyond reading.
_NOISE_FROM: Final = 0.2
_NOISE_FULL: Final = 0.6
#: Too few words tell nothing about a scan.
_MIN_WORDS: Final = 12

#: Parts below this are not worth a line.
_MIN_PART: Final = 0.01


@dataclass(frozen=True, slots=True)
class ChunkQuality:
    """What boilerplate takes from a chunk."""

    #: 1 - the parts, at least 0.
    value: float
    #: Share of the characters by part: navigation, legal, links, noise, and "repeated" once stored.
    parts: Mapping[str, float] = field(default_factory=dict)


def quality_of(text: str) -> ChunkQuality:
    """Return the quality of one chunk's text, 0 to 1, from the text alone."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    taken = _taken(lines)
    total = sum(map(len, lines)) or 1
    left = [line for line, part in zip(lines, taken, strict=True) if not part]
    links = link_characters(left)
    shares = {
        "navigation": _characters(lines, taken, "navigation") / total,
        "legal": _characters(lines, taken, "legal") / total,
        "links": links / total,
        "noise": noise(left) * (sum(map(len, left)) - links) / total,
    }
    parts = {name: round(share, 3) for name, share in shares.items() if share >= _MIN_PART}
    return ChunkQuality(max(0.0, round(1.0 - sum(parts.values()), 3)), parts)


def _taken(lines: Sequence[str]) -> list[str]:
    """Return for each line the part that takes it, or nothing."""
    navigation = navigation_lines(lines)
    return ["navigation" if it in navigation else "legal" if is_legal(line) else "" for it, line in enumerate(lines)]


def _characters(lines: Sequence[str], taken: Sequence[str], part: str) -> int:
    return sum(len(line) for line, by in zip(lines, taken, strict=True) if by == part)


def navigation_lines(lines: Sequence[str]) -> frozenset[int]:
    """Return the places of the lines that are menus, trails of breadcrumbs, page frames or tables of contents."""
    single = {place for place, line in enumerate(lines) if is_navigation(line)}
    return frozenset(single.union(*_menus(lines)))


def is_navigation(line: str) -> bool:
    """Return whether one line by itself is a menu bar, a trail, a piece of a page's frame or a line of contents."""
    if line.casefold() in boilerplate.FRAME_LINES or _is_contents(line):
        return True
    entries = _entries(line)
    known = sum(map(_is_known, entries))
    if _TRAILS.search(line) and len(entries) > 1 and _is_known(entries[0]) and _are_short(entries):
        return entries[0].casefold() in boilerplate.TRAIL_STARTS
    if len(entries) >= _MIN_ENTRIES:
        return _are_short(entries) and known > 1 and known >= _KNOWN_SHARE * len(entries)
    words = line.casefold().split()
    return len(words) >= _MIN_ENTRIES and boilerplate.PAGER_WORDS.issuperset(words)


def _is_contents(line: str) -> bool:
    return len(line) <= boilerplate.MAX_CONTENTS_CHARACTERS and bool(boilerplate.CONTENTS_END.search(line))


def _menus(lines: Sequence[str]) -> Iterator[set[int]]:
    """Yield the places of short lines one below the other that are a menu together."""
    for is_entry, run in groupby(range(len(lines)), lambda place: _could_be_entry(lines[place])):
        places = list(run)
        known = sum(_is_known(_entry(lines[place])) for place in places)
        enough = len(places) >= _MIN_LINES and known >= _MIN_ENTRIES
        if is_entry and enough and known >= _KNOWN_SHARE * len(places):
            yield set(places)


def _could_be_entry(line: str) -> bool:
    return _are_short([_entry(line)]) and not _SENTENCE_END.search(line)


def _entries(line: str) -> list[str]:
    return [entry for part in _SEPARATORS.split(line) if (entry := _entry(part))]


def _entry(text: str) -> str:
    return _BULLET.sub("", text).strip(_ENTRY_TRIM)


def _is_known(entry: str) -> bool:
    return entry.casefold() in boilerplate.MENU_WORDS


def _are_short(entries: Sequence[str]) -> bool:
    return all(0 < len(entry.split()) <= _MAX_ENTRY_WORDS for entry in entries)


def is_legal(line: str) -> bool:
    """Return whether a line is a footer's: rights, a cookie banner, an e-mail's disclaimer, a page number or maker."""
    if _is_page_number(line) or _is_copyright(line) or _is_maker(line):
        return True
    lowered = line.casefold()
    if "cookies" in lowered:
        return bool(boilerplate.COOKIES_USED.search(line) and boilerplate.COOKIES_ASKED.search(line))
    is_mail = len(line) >= boilerplate.MIN_DISCLAIMER_CHARACTERS and any(
        hint in lowered for hint in boilerplate.MAIL_HINTS
    )
    return is_mail and bool(boilerplate.MAIL_SELF.search(line) and boilerplate.MAIL_DISCLAIMED.search(line))


def _is_page_number(line: str) -> bool:
    return len(line) <= boilerplate.MAX_PAGE_CHARACTERS and bool(boilerplate.PAGE_LINE.fullmatch(line))


def _is_maker(line: str) -> bool:
    return len(line) <= boilerplate.MAX_MADE_WITH_CHARACTERS and bool(boilerplate.MADE_WITH.match(line))


def _is_copyright(line: str) -> bool:
    if len(line.split(maxsplit=boilerplate.MAX_COPYRIGHT_WORDS)) > boilerplate.MAX_COPYRIGHT_WORDS:
        return False
    return bool(boilerplate.COPYRIGHT.search(line) or boilerplate.RIGHTS_RESERVED.search(line))


def link_characters(lines: Sequence[str]) -> float:
    """Return how many characters are addresses, counting half where words say what they lead to; 0 for a few."""
    found = [(line, [match.group() for match in _ADDRESS.finditer(line)]) for line in lines]
    if sum(len(addresses) for _, addresses in found) < _MIN_ADDRESSES:
        return 0.0
    return sum(_weight(line) * sum(map(len, addresses)) for line, addresses in found)


def _weight(line: str) -> float:
    is_described = any(map(str.isalpha, _ADDRESS.sub(" ", line)))
    return _DESCRIBED_SHARE if is_described else 1.0


def noise(lines: Sequence[str]) -> float:
    """Return how damaged the words are, 0 (clean) to 1 (beyond reading), as a bad scan leaves them.

    Program text, tables of numbers and scripts other than the Latin one hold none by these rules.
    """
    words = [word for line in lines if not _CODE_SIGNS.search(_ADDRESS.sub("", line)) for word in _WORD.findall(line)]
    if len(words) < _MIN_WORDS:
        return 0.0
    noisy = sum(map(is_noisy, words)) + _lone_letters(words)
    share = noisy / len(words)
    return min(1.0, max(0.0, (share - _NOISE_FROM) / (_NOISE_FULL - _NOISE_FROM)))


def is_noisy(word: str) -> bool:
    """Return whether a word is what a scanner makes of dirt: broken inside, all dirt, or many consonants alone."""
    if not word.isalnum() and (_BROKEN.search(word) or (word != "|" and _DIRT.issuperset(word))):
        return True
    letters = word.strip(_PUNCTUATION)
    if len(letters) < _MIN_CONSONANTS or not _VOWELS.isdisjoint(letters) or letters.isupper():
        return False
    lowered = letters.lower()
    return bool(_LATIN_LETTERS.fullmatch(lowered)) and _VOWELS.isdisjoint(unicodedata.normalize("NFD", lowered))


def _lone_letters(words: Sequence[str]) -> int:
    """Return how many words stand in long rows of single letters."""
    rows = (list(row) for is_lone, row in groupby(words, lambda word: len(word) == 1 and word.isalpha()) if is_lone)
    latin = ([word for word in row if word.isascii()] for row in rows)
    return sum(len(row) for row in latin if len(row) >= _MIN_LONE_LETTERS)
