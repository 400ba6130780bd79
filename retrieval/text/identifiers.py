"""Identifiers, paths, versions and error numbers in a question. Pure."""

import re
from collections.abc import Sequence
from typing import Final

#: Words joined by punctuation without a space.
_JOINED: Final = re.compile(r"(?:(?<!_)_++|(?<![^\W_]))[^\W_]++(?:[-_./\\:@#]{1,3}[^\W_]++)+")
#: retry_limit, std::vector, C:\temp, ann@example.org; src/app/main; E-4711, ERR_WINCH-4711; 1.2.3; settings.py.
_AS_CODE: Final = re.compile(
    r"_|::|\\|@|/[^/]+/|(?<![A-Za-z])[a-z]*+[A-Z][A-Za-z]*+-\d|\d\.\d+\.\d"
    r"|(?<![^\W\d_])[^\W\d_]{2,}+\d*+\.[a-z_]{2,}"
)


def written_names(question: str) -> tuple[str, ...]:
    """Return the names in a question that are written as in code and logs, in lower case, each once, in order.

    A hyphenated word, an abbreviation with points, a decimal number and "and/or" are plain language.
    """
    found = (match[0] for match in _JOINED.finditer(question) if question[match.end() : match.end() + 1] != "_")
    return tuple(dict.fromkeys(name.lower() for name in found if _AS_CODE.search(name)))


def share_found(names: Sequence[str], *texts: str) -> float:
    """Return the share of names, 0 to 1, that the texts contain as whole words, ignoring case."""
    if not names:
        return 0.0
    folded = [text.lower() for text in texts]
    return sum(any(_contains(text, name) for text in folded) for name in names) / len(names)


def _contains(text: str, name: str) -> bool:
    place = text.find(name)
    while place >= 0:
        end = place + len(name)
        if not any(char.isalnum() or char == "_" for char in text[max(0, place - 1) : place] + text[end : end + 1]):
            return True
        place = text.find(name, place + 1)
    return False
