"""Detects text in UTF-16 and UTF-32 without a byte order mark, by how the decoded characters read.

Text in a language has few scripts, spaces between its words, and mostly common East Asian characters. Numbers,
pictures, programs and text in older encodings do not, when they are decoded as UTF-16.
"""

import codecs
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise, product
from typing import Final
from unicodedata import category, name

#: Divides by the size of every unit.
_SNIFFED_BYTES: Final = 8192
_UNITS: Final = {"utf-32-le": 4, "utf-32-be": 4, "utf-16-le": 2, "utf-16-be": 2}
#: With a NUL, or with more tabs, line ends and controls than this, bytes are no text in an old encoding.
_MAX_LOW_SHARE: Final = 0.4
#: Distinct characters that distinguish other bytes from an old encoding, and of how many characters one may be odd.
_MIN_DISTINCT: Final = 6
_CERTAIN_CHARACTERS_PER_ODD: Final = 20
#: In a shorter text all ideographs must be common in one and the same language.
_LONG: Final = 20
#: Of so many characters one may be odd: rare, a control or one that Unicode does not know.
_CHARACTERS_PER_ODD: Final = 10
#: Of so many letters one may be next to a letter of another script.
_LETTERS_PER_BREAK: Final = 5
#: Letters after which there is a space, a digit or a line's end, in scripts that have spaces.
_MAX_RUN_LENGTH: Final = 24
#: A shorter text is detected only where it is in an alphabet.
_SHORT: Final = 4
#: Share of characters that are letters or ASCII; the others are symbols.
_MIN_READABLE: Final = 0.2
#: Latin letters that may come on one character of ASCII, themselves among them.
_LATIN_PER_ASCII: Final = 3
_TEXT_CONTROLS: Final = "\t\n\r\f\x1b"
_CONTROLS: Final = bytes(sorted(set(range(32)) - set(_TEXT_CONTROLS.encode())))
_ODD: Final = "odd"
_NEUTRAL: Final = ""
_EAST_ASIAN: Final = "EAST ASIAN"
_LATIN: Final = "LATIN"
_UNSPACED: Final = frozenset({_EAST_ASIAN, "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN"})
#: The scripts of living languages, as the names of their letters begin.
_SCRIPTS: Final = _UNSPACED | {
    *(_LATIN, "GREEK", "CYRILLIC", "ARMENIAN", "GEORGIAN", "HEBREW", "ARABIC", "SYRIAC", "THAANA", "ETHIOPIC"),
    *("DEVANAGARI", "BENGALI", "GURMUKHI", "GUJARATI", "ORIYA", "TAMIL", "TELUGU", "KANNADA", "MALAYALAM", "SINHALA"),
    "MONGOLIAN",
}
_KANA: Final = frozenset({"HIRAGANA", "KATAKANA", "BOPOMOFO", "HALFWIDTH", "FULLWIDTH", "KATAKANA-HIRAGANA"})
#: Where the old East Asian encodings have their common characters: the lead bytes of each.
_COMMON: Final = {"gb2312": (0xB0, 0xD7), "euc_jp": (0xB0, 0xCF), "big5": (0xA4, 0xC6), "euc_kr": (0xB0, 0xC8)}


@dataclass(frozen=True, slots=True)
class _Reading:
    """How bytes read in one encoding."""

    encoding: str
    text: str

    @property
    def ascii_share(self) -> float:
        """The share of characters that ASCII has."""
        return sum(map(str.isascii, self.text)) / len(self.text)

    @property
    def is_possible(self) -> bool:
        """Whether nothing in it keeps it from being a text."""
        return "\0" not in self.text and self._count_odd() <= len(self.text) // _CHARACTERS_PER_ODD

    @property
    def blocks(self) -> int:
        """The number of Unicode's pages of 256 characters that it has some of."""
        return len({ord(character) >> 8 for character in self.text})

    @property
    def is_certain(self) -> bool:
        """Whether it is long and regular enough to be no old encoding, in which any two bytes can be an ideograph."""
        length, characters = len(self.text), set(self.text)
        if len(characters) < _MIN_DISTINCT or self._count_odd() > length // _CERTAIN_CHARACTERS_PER_ODD:
            return False
        ideographs = set(filter(_is_common, characters))
        return length >= _LONG or any(ideographs <= common for common in _common_characters())

    @property
    def is_text(self) -> bool:
        """Whether it reads like a text in some language."""
        scripts = [_script(character) for character in self.text]
        counts = Counter(scripts)
        return (
            self.is_possible
            and (len(self.text) >= _SHORT or self._is_alphabetic(counts))
            and self._is_readable(counts)
            and _stays_in_script(scripts)
            and self._has_spaces(counts)
        )

    def _is_alphabetic(self, counts: Counter[str]) -> bool:
        """Return whether there is nothing but letters of alphabets and ASCII, and more than one character."""
        signs = sum(not (character.isascii() or character.isalpha()) for character in self.text)
        return len(self.text) > 1 and not (signs or counts[_EAST_ASIAN])

    def _count_odd(self) -> int:
        return sum(_script(character) == _ODD for character in self.text)

    def _is_readable(self, counts: Counter[str]) -> bool:
        """Return whether there is more than symbols, and enough of ASCII beside Latin letters."""
        letters = sum(count for script, count in counts.items() if script not in {_ODD, _NEUTRAL})
        plain = sum(character.isascii() for character in self.text)
        is_readable = max(letters, plain) >= _MIN_READABLE * len(self.text)
        return is_readable and _LATIN_PER_ASCII * plain >= counts[_LATIN]

    def _has_spaces(self, counts: Counter[str]) -> bool:
        spaced = sum(count for script, count in counts.items() if script in _SCRIPTS - _UNSPACED)
        breaks = sum(character.isascii() and not character.isalpha() for character in self.text)
        return breaks >= spaced // _MAX_RUN_LENGTH


_NOTHING: Final = _Reading("", " ")


def wide_encoding(content: bytes, declared: str = "") -> str:
    """Return the UTF-16 or UTF-32, with its byte order, that a text without a mark is in; empty for anything else.

    `declared` is the charset that the source names. A byte that is missing at the end does no harm.
    """
    sample = content[:_SNIFFED_BYTES]
    hinted = _hinted(declared)
    if not count_controls(sample) and _is_utf8(sample):
        return ""
    if found := _likeliest(it for it in _readings(sample, hinted) if it.is_text):
        return found
    could_be_narrow = b"\0" not in sample and _low_share(sample) < _MAX_LOW_SHARE
    likely = (it for it in _readings(sample, tuple(_UNITS)) if it.is_text and (it.is_certain or not could_be_narrow))
    if found := _likeliest(likely):
        return found
    return _likeliest(it for it in _readings(sample, hinted) if it.is_possible)


def count_controls(sample: bytes) -> int:
    """Return how many bytes no text has in an encoding of single bytes or in UTF-8."""
    return len(sample) - len(sample.translate(None, _CONTROLS))


def _low_share(sample: bytes) -> float:
    return sum(byte < ord(" ") for byte in sample) / len(sample)


def wide_text(content: bytes, encoding: str) -> str:
    """Return the text of bytes in a wide encoding, without a unit that was cut off at the end."""
    whole = len(content) - len(content) % _UNITS[encoding]
    return content[:whole].decode(encoding, errors="replace")


def _likeliest(readings: Iterable[_Reading]) -> str:
    """Return the encoding in which most is ASCII, then that of the fewest alphabets; empty for none."""
    return max(readings, key=lambda it: (it.ascii_share, -it.blocks), default=_NOTHING).encoding


def _hinted(declared: str) -> tuple[str, ...]:
    """Return the wide encodings that a declared charset can mean; none for any other charset."""
    try:
        known = codecs.lookup(declared).name if declared else ""
    except (LookupError, ValueError):
        return ()
    return tuple(encoding for encoding in _UNITS if known and encoding.startswith(known))


def _readings(sample: bytes, encodings: Sequence[str]) -> Iterator[_Reading]:
    """Yield what the sample reads in each encoding that it is valid in; a character cut at its end is left out."""
    for encoding in encodings:
        decoder = codecs.getincrementaldecoder(encoding)()
        try:
            text = decoder.decode(sample)
        except UnicodeDecodeError:
            continue
        if text:
            yield _Reading(encoding, text)


def _is_utf8(sample: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample)
    except UnicodeDecodeError:
        return False
    return True


def _stays_in_script(scripts: Iterable[str]) -> bool:
    """Return whether letters that touch are nearly always of one script."""
    touching = [pair for pair in pairwise(scripts) if _NEUTRAL not in pair and _ODD not in pair]
    return sum(first != second for first, second in touching) <= len(touching) // _LETTERS_PER_BREAK + 1


@lru_cache(maxsize=65_536)
def _script(character: str) -> str:
    """Return a letter's script, nothing for what every text may have, and `_ODD` for what hardly any text has."""
    kind = category(character)
    if kind == "Cc":
        return _NEUTRAL if character in _TEXT_CONTROLS else _ODD
    if kind in {"Cn", "Co", "Cs"}:
        return _ODD
    if kind[0] not in "LM":
        return _NEUTRAL
    return _script_of_letter(character, name(character, ""))


def _script_of_letter(character: str, named: str) -> str:
    first = named.partition(" ")[0]
    if first in {"CJK", "HANGUL"}:
        return _EAST_ASIAN if _is_common(character) else _ODD
    if first in _KANA:
        return _EAST_ASIAN
    if first in {"COMBINING", "MODIFIER", "FEMININE", "MASCULINE", "MICRO"}:
        return _NEUTRAL
    return first if first in _SCRIPTS else _ODD


def _is_common(character: str) -> bool:
    return any(character in common for common in _common_characters())


@cache
def _common_characters() -> tuple[frozenset[str], ...]:
    """Return the ideographs and syllables that each of the standards before Unicode lists first."""
    return tuple(frozenset(_listed_first(encoding, *leads)) for encoding, leads in _COMMON.items())


def _listed_first(encoding: str, first: int, last: int) -> Iterator[str]:
    for lead, trail in product(range(first, last + 1), range(0x40, 0xFF)):
        character = bytes((lead, trail)).decode(encoding, "ignore")
        if len(character) == 1 and not character.isascii():
            yield character
