"""Literals of a text: key combinations, keys, code, options, paths and file names, which a source must contain. Pure.

Words may be changed and reordered by an answer, literals may not: Ctrl+U is another command than Ctrl+Shift+U.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final

_MODIFIERS: Final = {
    "ctrl": ("ctrl", "control", "strg", "\u2303"),
    "alt": ("alt", "option", "opt", "\u2325"),
    "shift": ("shift", "umschalt", "\u21e7"),
    "cmd": ("cmd", "command", "\u2318"),
    "win": ("win", "windows", "super", "meta"),
    "altgr": ("altgr",),
    "fn": ("fn",),
}
_KEYS: Final = {
    "enter": ("enter", "return"),
    "esc": ("esc", "escape"),
    "tab": ("tab",),
    "space": ("space",),
    "backspace": ("backspace",),
    "delete": ("delete", "del"),
    "insert": ("insert", "ins"),
    "pageup": ("pageup", "pgup"),
    "pagedown": ("pagedown", "pgdn"),
}
_SAME: Final = {name: key for key, names in (_MODIFIERS | _KEYS).items() for name in names}
_MODIFIER: Final = "|".join(sorted((it for names in _MODIFIERS.values() for it in names), key=len, reverse=True))
_NAMED: Final = "|".join(sorted((it for names in _KEYS.values() for it in names), key=len, reverse=True))
_ARROW: Final = "up|down|left|right|home|end"
#: Ctrl+Shift+U, Ctrl-U. After a hyphen only what cannot be a word: shift-left, alt-text.
_COMBINATION: Final = re.compile(
    rf"(?<![\w+])(?:{_MODIFIER})"
    rf"(?:\+(?:{_MODIFIER}|{_NAMED}|{_ARROW}|f\d{{1,2}}|[^\s\w]|\w)(?!\w)"
    rf"|-(?:(?:{_MODIFIER})(?!\w)|(?:{_NAMED}|f\d{{1,2}}|\w)(?![\w-]))){{1,4}}",
    re.IGNORECASE,
)
_JOINT: Final = re.compile(r"[+-]")
_PRESSED: Final = re.compile(
    rf"\b(?:press|hit|hold|push|type|tap)(?:ed|es|ing|s)?(?: down)? (?:the )?[\"'\u201c\u2018]?"
    rf"(?P<key>{_NAMED}|f\d{{1,2}}|(?-i:[A-Z0-9]))(?![\w+-])",
    re.IGNORECASE,
)
_CODE: Final = re.compile(r"(?<!`)(?P<ticks>`{1,3})(?!`)(?P<code>[^`\n]{1,500}+)(?P=ticks)(?!`)")
_OPTION: Final = re.compile(r"--[A-Za-z][\w-]*+(?:=\S*+)?|-[A-Za-z]")
#: A word that is an address, a path, a variable, a function, an identifier or a file name.
_TOKEN: Final = re.compile(
    r"https?://\S++"
    r"|[\w.+-]++@[\w.-]++"
    r"|(?:~|\.{1,2})?/[\w.~-]++(?:/[\w.~-]++)++|~/[\w.~-]++"
    r"|[A-Za-z]:\\[\w.\\-]++"
    r"|\$[A-Za-z_]\w*+|%[A-Z_]\w++%"
    r"|\w++(?:::\w++)++(?:\(\))?"
    r"|[A-Za-z][\w.]*+\(\)"
    r"|[A-Za-z0-9]++(?:_[A-Za-z0-9]++)++"
    r"|\w[\w-]++(?:\.[\w-]{2,}+)*+"
)
_NAME: Final = re.compile(r"[A-Za-z0-9.-]++")
_FILE: Final = re.compile(r"[^./]{2,}+(?:\.[^./]++)*?\.[a-z][a-z0-9]{1,4}")
_BLANKS: Final = re.compile(r"\s+")
_FORMAT: Final = re.compile(r"[`*]+")
_PLUS: Final = re.compile(r" ?\+ ?")
_PROMPT: Final = re.compile(r"^(?:[$>#] )+")
_TAIL: Final = " .,;:"
_AROUND: Final = "\"'\u201c\u201d\u2018\u2019<>[],;:!?"
_MAX_TOKEN_CHARACTERS: Final = 200
_CACHED_TEXTS: Final = 1_000


class LiteralKind(StrEnum):
    """The kind of a literal, which decides how it is compared."""

    COMBINATION = "combination"
    KEY = "key"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal of an answer."""

    kind: LiteralKind
    text: str  #: As written.
    value: str  #: In the form that is compared.


@dataclass(frozen=True, slots=True)
class LiteralSource:
    """A text in which literals are looked up."""

    plain: str  #: Without backticks and asterisks, with single blanks.
    folded: str
    combinations: frozenset[str]

    def holds(self, literal: Literal) -> bool:
        """Return whether the text contains a literal: combinations in any order of their modifiers, code verbatim."""
        if literal.kind is LiteralKind.COMBINATION:
            return literal.value in self.combinations
        if literal.kind is LiteralKind.KEY:
            # The key A is neither the article nor a part of Ctrl+A.
            is_letter = len(literal.value) == 1
            value, text = (literal.text, self.plain) if is_letter else (literal.value, self.folded)
            return _is_in(value, text, joints="+")
        # Letters alone may be capitalized in another way; commands and options may not.
        if literal.value.replace(" ", "").isalpha():
            return _is_in(literal.value.casefold(), self.folded)
        return _is_in(literal.value, self.plain)


@lru_cache(maxsize=_CACHED_TEXTS)
def literal_source(text: str) -> LiteralSource:
    """Return a text for looking up literals."""
    plain = _plain(text)
    found = frozenset(_combination(it[0]) for it in _COMBINATION.finditer(plain))
    return LiteralSource(plain, plain.casefold(), found)


def literals_of(text: str) -> tuple[Literal, ...]:
    """Return the literals of a Markdown text, each once, in order of kind."""
    found: dict[tuple[LiteralKind, str], Literal] = {}
    for literal in _found(text):
        found.setdefault((literal.kind, literal.value), literal)
    return tuple(found.values())


def _found(text: str) -> Iterator[Literal]:
    for span in _CODE.finditer(text):
        if literal := code_literal(span["code"]):
            yield literal
    prose = _plain(_CODE.sub(" ", text))
    for it in _COMBINATION.finditer(_plain(text)):
        yield Literal(LiteralKind.COMBINATION, it[0], _combination(it[0]))
    for it in _PRESSED.finditer(_plain(text)):
        yield Literal(LiteralKind.KEY, it["key"], it["key"].casefold())
    for word in prose.split():
        if len(word) <= _MAX_TOKEN_CHARACTERS and (value := _token(word)):
            yield Literal(LiteralKind.CODE, value, value)


def _token(word: str) -> str:
    """Return a word without the punctuation around it if it is code; empty if it is prose."""
    value = word.strip(_AROUND).rstrip(_TAIL)
    value = value if value.endswith("()") else value.strip("()").rstrip(_TAIL)
    if not value.isascii() or value.isalpha():
        return ""
    if _OPTION.fullmatch(value):
        return value
    is_code = _TOKEN.fullmatch(value) and (not _NAME.fullmatch(value) or _FILE.fullmatch(value))
    return value if is_code else ""


def code_literal(code: str) -> Literal | None:
    """Return a code span or a line of code as a literal; None for a key combination, or one without letters."""
    plain = _plain(code).strip()
    value = _PROMPT.sub("", plain).rstrip(_TAIL)
    if _COMBINATION.fullmatch(plain) or not any(map(str.isalnum, value)):
        return None
    return Literal(LiteralKind.CODE, value, value)


def _plain(text: str) -> str:
    return _PLUS.sub("+", _BLANKS.sub(" ", _FORMAT.sub("", text)))


def _combination(written: str) -> str:
    parts = (it.casefold() for it in _JOINT.split(written) if it)
    return "+".join(sorted(_SAME.get(it, it) for it in parts))


def _is_in(value: str, text: str, *, joints: str = "") -> bool:
    """Return whether a text contains a value that is not part of a longer word, nor next to one of the `joints`."""
    place = text.find(value)
    while place >= 0:
        end = place + len(value)
        before, after = text[max(0, place - 1) : place], text[end : end + 1]
        if not (_joins(value[0], before, joints) or _joins(value[-1], after, joints)):
            return True
        place = text.find(value, place + 1)
    return False


def _joins(own: str, neighbor: str, joints: str) -> bool:
    if not neighbor or not (own.isalnum() or own in "_-"):
        return False
    return neighbor.isalnum() or neighbor == "_" or neighbor in joints
