"""What a question writes as machines do: identifiers, paths, versions, error numbers. Pure."""

import re
from collections.abc import Sequence
from typing import Final

#: Words that signs join without a space.
_JOINED: Final = re.compile(r"(?:(?<!_)_++|(?<![^\W_]))[^\W_]++(?:[-_./\\:@#]{1,3}[^\W_]++)+")
#: retry_limit, std::vector, C:\temp, ann@example.org; src/app/main; E-4711, ERR_WINCH-4711; 1.2.3; settings.py.
_AS_CODE: Final = re.compile(
    r"_|::|\\|@|/[^/]+/|(?<![A-Za-z])[a-z]*+[A-Z][A-Za-z]*+-\d|\d\.\d+\.\d"
    r"|(?<![^\W\d_])[^\W\d_]{2,}+\d*+\.[a-z_]{2,}",
)


def written_names(question: str) -> tuple[str, ...]:
    """Return what a question names as it is written in code and logs, in small letters, each once, in order.

    A hyphenated word, an abbreviation with points, a decimal number and "and/or" are plain language.
    """
    found = (match[0] for match in _JOINED.finditer(question))
    return tuple(dict.fromkeys(name.lower() for name in found if _AS_CODE.search(name)))


def share_held(names: Sequence[str], *texts: str) -> float:
    """Return which share of names stands in texts as it is written, but for case, and whole, 0 to 1."""
    if not names:
        return 0.0
    folded = [text.lower() for text in texts]
    return sum(any(_holds(text, name) for text in folded) for name in names) / len(names)


def _holds(text: str, name: str) -> bool:
    place = text.find(name)
    while place >= 0:
        if not _is_inside(text, place, place + len(name)):
            return True
        place = text.find(name, place + 1)
    return False


def _is_inside(text: str, start: int, end: int) -> bool:
    """Return whether the place is a part of a longer word."""
    return any(sign.isalnum() or sign == "_" for sign in (text[max(0, start - 1) : start] + text[end : end + 1]))
