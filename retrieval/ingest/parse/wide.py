"""Detects text in UTF-16 and UTF-32 without a byte order mark, by how the decoded characters read.

Text in a language has few scripts, spaces between its words, and mostly common East Asian characters. Numbers,
pictures, programs and text in older encodings do not, when they are decoded as UTF-16.
"""

import codecs
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise, product
from typing import Final
from unicodedata import category, name

_SNIFFED_BYTES: Final = 8192  #: Divides by the size of every unit.
_UNITS: Final = {"utf-32-le": 4, "utf-32-be": 4, "utf-16-le": 2, "utf-16-be": 2}
#: With a NUL, or with more tabs, line ends and controls than this, bytes are not text in an old encoding.
_MAX_LOW_SHARE: Final = 0.4
#: Minimum of distinct characters that rules out an old encoding, and characters per odd one.
_MIN_DISTINCT: Final = 6
_CERTAIN_CHARACTERS_PER_ODD: Final = 20
_LONG: Final = 20  #: In a shorter text all ideographs must be common in one and the same language.
_CHARACTERS_PER_ODD: Final = 10  #: Characters per odd one, which is rare, a control or unassigned.
_LETTERS_PER_BREAK: Final = 5  #: Adjacent letters per pair of different scripts.
_MAX_RUN_LENGTH: Final = 24  #: Maximum letters without a space, a digit or a line end, in scripts with spaces.
_SHORT: Final = 4  #: A shorter text is detected only in an alphabet.
_MIN_READABLE: Final = 0.2  #: Share of characters that are letters or ASCII; the others are symbols.
_LATIN_PER_ASCII: Final = 3  #: Maximum Latin letters per ASCII character, which includes ASCII letters.
_TEXT_CONTROLS: Final = "\t\n\r\f\x1b"
_CONTROLS: Final = bytes(sorted(set(range(32)) - set(_TEXT_CONTROLS.encode())))
_ODD: Final = "odd"
_NEUTRAL: Final = ""
_EAST_ASIAN: Final = "EAST ASIAN"
_LATIN: Final = "LATIN"
_UNSPACED: Final = frozenset({_EAST_ASIAN, "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN"})
#: The scripts of living languages, by the first word of their letters' Unicode names.
_SCRIPTS: Final = _UNSPACED | {
    *(_LATIN, "GREEK", "CYRILLIC", "ARMENIAN", "GEORGIAN", "HEBREW", "ARABIC", "SYRIAC", "THAANA", "ETHIOPIC"),
    *("DEVANAGARI", "BENGALI", "GURMUKHI", "GUJARATI", "ORIYA", "TAMIL", "TELUGU", "KANNADA", "MALAYALAM", "SINHALA"),
    "MONGOLIAN",
}
_KANA: Final = frozenset({"HIRAGANA", "KATAKANA", "BOPOMOFO", "HALFWIDTH", "FULLWIDTH", "KATAKANA-HIRAGANA"})
#: Lead bytes of the common characters in each old East Asian encoding.
_COMMON: Final = {"gb2312": (0xB0, 0xD7), "euc_jp": (0xB0, 0xCF), "big5": (0xA4, 0xC6), "euc_kr": (0xB0, 0xC8)}


@dataclass(frozen=True, slots=True)
class _Reading:
    encoding: str
    text: str

    @property
    def is_possible(self) -> bool:
        return "\0" not in self.text and self._count_odd() <= len(self.text) // _CHARACTERS_PER_ODD

    @property
    def is_certain(self) -> bool:
        """Whether it is too long and regular for an old encoding, in which any two bytes can be an ideograph."""
        length, characters = len(self.text), set(self.text)
        if len(characters) < _MIN_DISTINCT or self._count_odd() > length // _CERTAIN_CHARACTERS_PER_ODD:
            return False
        ideographs = set(filter(_is_common, characters))
        return length >= _LONG or any(ideographs <= common for common in _common_characters())

    @property
    def is_text(self) -> bool:
        if not self.is_possible:
            return False
        scripts = [_script(character) for character in self.text]
        counts = Counter(scripts)
        signs = sum(not (character.isascii() or character.isalpha()) for character in self.text)
        is_alphabetic = len(self.text) > 1 and not (signs or counts[_EAST_ASIAN])
        letters = sum(count for script, count in counts.items() if script not in {_ODD, _NEUTRAL})
        plain = sum(character.isascii() for character in self.text)
        is_readable = (
            max(letters, plain) >= _MIN_READABLE * len(self.text) and _LATIN_PER_ASCII * plain >= counts[_LATIN]
        )
        touching = [pair for pair in pairwise(scripts) if _NEUTRAL not in pair and _ODD not in pair]
        stays_in_script = sum(one != other for one, other in touching) <= len(touching) // _LETTERS_PER_BREAK + 1
        spaced = sum(count for script, count in counts.items() if script in _SCRIPTS - _UNSPACED)
        breaks = sum(character.isascii() and not character.isalpha() for character in self.text)
        has_spaces = breaks >= spaced // _MAX_RUN_LENGTH
        return (len(self.text) >= _SHORT or is_alphabetic) and is_readable and stays_in_script and has_spaces

    def _count_odd(self) -> int:
        return sum(_script(character) == _ODD for character in self.text)


_NOTHING: Final = _Reading("", " ")


def wide_encoding(content: bytes, declared: str = "") -> str:
    """Return the UTF-16 or UTF-32 encoding of a text without a mark, which may be cut; empty for other content."""
    sample = content[:_SNIFFED_BYTES]
    hinted = _hinted(declared)
    if not count_controls(sample) and _is_utf8(sample):
        return ""
    if found := _likeliest(it for it in _readings(sample, hinted) if it.is_text):
        return found
    low = sum(byte < ord(" ") for byte in sample)
    could_be_narrow = b"\0" not in sample and low / len(sample) < _MAX_LOW_SHARE
    likely = (it for it in _readings(sample, tuple(_UNITS)) if it.is_text and (it.is_certain or not could_be_narrow))
    if found := _likeliest(likely):
        return found
    return _likeliest(it for it in _readings(sample, hinted) if it.is_possible)


def count_controls(sample: bytes) -> int:
    """Return the number of control bytes, which no text has in a single-byte encoding or UTF-8."""
    return len(sample) - len(sample.translate(None, _CONTROLS))


def wide_text(content: bytes, encoding: str) -> str:
    """Return the text of bytes in a wide encoding, without an incomplete unit at the end."""
    end = len(content) - len(content) % _UNITS[encoding]
    return content[:end].decode(encoding, errors="replace")


def _likeliest(readings: Iterable[_Reading]) -> str:
    """Return the encoding with the most ASCII, then with the fewest alphabets; empty for none."""

    def key(it: _Reading) -> tuple[float, int]:
        return sum(map(str.isascii, it.text)) / len(it.text), -len({ord(character) >> 8 for character in it.text})

    return max(readings, key=key, default=_NOTHING).encoding


def _hinted(declared: str) -> tuple[str, ...]:
    with suppress(LookupError, ValueError):
        known = codecs.lookup(declared).name if declared else ""
        return tuple(encoding for encoding in _UNITS if known and encoding.startswith(known))
    return ()


def _readings(sample: bytes, encodings: Sequence[str]) -> Iterator[_Reading]:
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


@lru_cache(maxsize=65_536)
def _script(character: str) -> str:
    """Return a letter's script, `_NEUTRAL` for characters of any text, and `_ODD` for very rare ones."""
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
    sets = []
    for encoding, (first, last) in _COMMON.items():
        pairs = product(range(first, last + 1), range(0x40, 0xFF))
        characters = (bytes(pair).decode(encoding, "ignore") for pair in pairs)
        sets.append(frozenset(it for it in characters if len(it) == 1 and not it.isascii()))
    return tuple(sets)
