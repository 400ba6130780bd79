"""Identifiers, paths, versions and error strings: as they are written, and the words in them. No Django.

An analyzer takes `retry_limit`, `corecube.settings`, `src/app.py`, `E-4711` and `1.2.3` apart. Here they are found
whole: what is joined by a sign, with the ends of a path that people write alone. Humps, as in `OutboxEntry`, are taken
apart.
"""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

MAX_NAME_LENGTH: Final = 200  #: Maximum length of a stored spelling; longer ones are data, not names.
#: Spellings that one name gives at the most: itself, and its parts that are joined themselves.
_MAX_FORMS: Final = 12
_JOINED: Final = re.compile(
    r"(?:(?<!\d)(?<!\d,)|(?<!\d,)(?=\d{3},)|(?<=\d,)(?=\d{1,2},))\d{1,3}(?:,\d{3})++(?![,\d])"  # 48,200
    r"|(?:(?<![^\W_])|(?<=,\d{3}))[^\W_]++(?:[-_./\\:@#+&]{1,3}[^\W_]++)+"  # a_b, a.b, a/b, a-1, a::b, a@b
    r"|(?<!\w)[A-Za-z](?:\+\+|#)(?!\w)"  # C++, C#
)
_SIGN: Final = re.compile(r"[-_./\\:@#+&,]")
#: After one of these the rest of a name is often written alone: `app.py` of `src/app.py`, `Entry` of `models.Entry`.
_STEP: Final = re.compile(r"[./\\:@#]+")
_PATH: Final = re.compile(r"[/\\:@#]+")  #: Separators of the steps of a path; a dot may also belong to a file.
_LINE: Final = re.compile(r"(?::[0-9]+){1,2}$")  #: Line and column behind a file's name.
_HUMPED: Final = re.compile(
    r"(?<![A-Za-z0-9])(?:[A-Z]*[a-z0-9]+[A-Z][A-Za-z0-9]*|[A-Z]{2,}[a-z]{2,}[A-Za-z0-9]*)(?![A-Za-z0-9])"
)
_HUMP: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


def spellings(text: str) -> list[str]:
    """Return what is joined by signs in a text, as it is written but in small letters, with parts that are joined too.

    Each is yielded as often as it occurs, in order: "src/app.py" gives itself and "app.py".
    """
    # Most words need no look: that takes a tenth of the time.
    words = (word for word in text.split() if not word.isalnum())
    return [form for word in words for found in _JOINED.finditer(word) for form in _forms(found[0].lower())]


def humps(text: str) -> list[str]:
    """Return the words in names with humps, in small letters: "HTTPServer" gives "http" and "server"."""
    parts = (part for name in _HUMPED.finditer(text) for part in _HUMP.findall(name[0]))
    return [part.lower() for part in parts if len(part) > 1]


def _forms(name: str) -> Iterator[str]:
    if len(name) > MAX_NAME_LENGTH:
        return iter(())
    # The end of a version is none: nobody means 2.3 by 1.2.3.
    ends = (name[step.end() :] for step in _STEP.finditer(name) if step[0] != "." or not name[step.end()].isdigit())
    parts = (part for part in (_LINE.sub("", name), *ends, *_PATH.split(name)) if _SIGN.search(part))
    return islice(dict.fromkeys((name, *parts)), _MAX_FORMS)
