"""Numbers as languages write them: "1.250,50" and "1 250,50" are 1,250.50 in English. Pure."""

import re
from typing import Final

#: PostgreSQL's names of languages with a decimal comma; others have a decimal point.
_WITH_COMMA: Final = frozenset(
    {
        *("armenian", "basque", "catalan", "danish", "dutch", "finnish", "french", "german", "greek", "hungarian"),
        *("indonesian", "italian", "lithuanian", "norwegian", "portuguese", "romanian", "russian", "serbian"),
        *("spanish", "swedish", "turkish"),
    }
)
_NUMBER: Final = re.compile(
    r"(?<![\w.,])(?:[1-9]\d{0,2}(?:(?:\.\d{3}){1,4}|(?: \d{3}){1,4})(?:,\d{1,9})?|\d{1,12},\d{1,9})(?!\d|[.,]\d)"
)
_IN_ENGLISH: Final = str.maketrans(".,\N{SPACE}", ",.,")


def in_english(text: str, language: str) -> str:
    """Return a text of a language with its numbers written as in English; no character changes its place."""
    if language not in _WITH_COMMA:
        return text
    return _NUMBER.sub(lambda found: found[0].translate(_IN_ENGLISH), text)
