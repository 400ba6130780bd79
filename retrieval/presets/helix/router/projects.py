"""Finding a known project in a question. Pure."""

import re
from collections.abc import Iterable
from typing import Final

_MIN_LETTERS: Final = 2
#: Marks a word as a name in any case: a digit, a hyphen, an underscore, a capital inside.
_MARKED: Final = re.compile(r"\d|[-_./]|(?<=\w)[A-Z]")


def project_in(text: str, known: Iterable[str]) -> str:
    """Return the longest known project that a question names; empty for none.

    A name of several words, or with a digit, a hyphen or a capital inside, matches in any case. Any other name may be a
    common word: it matches next to the word "project", or if name and question capitalise it behind another word.
    """
    found = [name for name in known if len(name.strip()) >= _MIN_LETTERS and _names(text, name.strip())]
    return max(found, key=lambda name: (len(name), name), default="")


def _names(text: str, name: str) -> bool:
    word = rf"(?<![\w-]){re.escape(name)}(?![\w-])"
    if re.search(rf"\bproject\s+{word}|{word}\s+project\b", text, re.IGNORECASE):
        return True
    if len(name.split()) > 1 or _MARKED.search(name):
        return bool(re.search(word, text, re.IGNORECASE))
    return name[0].isupper() and bool(re.search(rf"(?<=\w\s){word}", text))
