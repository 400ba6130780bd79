"""Splitting a line of text into its sentences. Pure."""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final

_FULL_STOPS: Final = (".", "!", "?", "…", ":", "。", "！", "？", "।")  # noqa: RUF001 -- other scripts' full stops
_CLOSING: Final = "\"'”’»)]"  # noqa: RUF001 -- typographic quotation marks
_END: Final = re.compile(r"(?:(?<![.!?…])[.!?…]++[\"'”’»)\]]*+\s+|[。！？।]+\s*)")  # noqa: RUF001 -- other scripts' full stops
_LAST_WORD: Final = re.compile(r"(?:^|(?P<number>\d ?)|[\s(])(?P<word>[^\s\d(][^\s(]{0,13})\.$")
_DAY: Final = re.compile(r"(?<![\d,])\d{1,2}\.$")
_WORD: Final = re.compile(r"\w+")
_NUMBER: Final = re.compile(r"\s*\(?\d{1,2}[.)]+")  #: Of an item, before its sentence: "2. Pay the fee."
LOOK_AROUND: Final = 16  #: Characters before and after a full stop that tell whether a sentence ends there.


def split_sentences(text: str) -> list[str]:
    """Return the sentences of one line of text, in order; only the blanks between them are removed."""
    sentences: list[str] = []
    start = 0
    for end in _END.finditer(text):
        stop = end.start() + len(end[0].rstrip())
        before, after = text[max(start, stop - LOOK_AROUND) : stop], text[end.end() : end.end() + LOOK_AROUND]
        if not (continues(before, after) or _NUMBER.fullmatch(text, start, stop)):
            sentences.append(text[start : end.end()].strip())
            start = end.end()
    sentences.append(text[start:].strip())
    return [sentence for sentence in sentences if sentence]


def ends_as_sentence(text: str) -> bool:
    """Return whether a text ends with a full stop, a colon or the like, before closing quotation marks and brackets."""
    return text.rstrip(_CLOSING).endswith(_FULL_STOPS)


def continues(before: str, after: str) -> bool:
    """Return whether a sentence goes on after a full stop, by the last characters before and the first after it.

    It does so in lower case, after an initial or an abbreviation ("max. 5"), and within a date ("31. März", "Dec. 11").
    """
    if after[:1].islower():
        return True
    known = _words()["abbreviations"]
    if _DAY.search(before):
        following = _WORD.match(after)
        return following is not None and following[0].lower() in known["months_after_days"]
    found = _LAST_WORD.search(before)
    if not found:
        return False
    last = found["word"]
    if len(last) == 1 and last.isascii() and last.isupper():
        return True
    word = last[:1].lower() + last[1:]
    is_cut = word in known["before_numbers"] and (after[:1].isdecimal() or after[:1] == "§")
    return is_cut or word in known["words"] or (word in known["units"] and not found["number"])


@cache
def _words() -> Mapping[str, Any]:
    return tomllib.loads((files("retrieval.text") / "sentences.toml").read_text(encoding="utf-8"))
