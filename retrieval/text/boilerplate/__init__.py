"""Words and patterns of boilerplate in the most common languages of web pages: data, free of Django."""

import re
from importlib.resources import files
from typing import Final

from corecube.data import read_toml


def _entries(name: str) -> frozenset[str]:
    text = (files("retrieval.text.boilerplate") / f"{name}.txt").read_text(encoding="utf-8")
    return frozenset(line for line in text.splitlines() if line and not line.startswith("#"))


_TABLES: Final = read_toml("retrieval.text.boilerplate", "patterns.toml")
_PATTERNS: Final = {name: re.compile("|".join(parts), re.IGNORECASE) for name, parts in _TABLES.items()}

#: Usual names of menu entries. Several of them in a row make a menu, one does not.
MENU_WORDS: Final = _entries("menu_words")
FRAME_LINES: Final = _entries("frame_lines")  #: Complete lines that only occur in a page's frame.
#: Words of page navigation in manuals, several on one line: "Prev Up Home Next".
PAGER_WORDS: Final = _entries("pager_words")
TRAIL_STARTS: Final = frozenset({"home", "homepage", "startseite", "accueil", "inicio"})

#: The end of a line in a printed table of contents: "Accounting ........ 12", "1.2 Scope . . . . . 7".
CONTENTS_END: Final = re.compile(
    r"(?:(?:(?<=\w)|(?<=\w.)|(?<=\w..)|(?<=\w...))"
    r"(?:(?<!\.)\.{4,}+|(?<!\s\.)(?:\s\.){4,}+|(?<!\u2026)\u2026{2,}+|(?<!_)_{6,}+)|(?<!_)_{7,}+)"
    r"\s*+(?:[A-Z]-)?(?:\d{1,4}|[ivxlc]{1,7})$"
)
MAX_CONTENTS_CHARACTERS: Final = 200

#: A line with only a page number, and its maximum length.
PAGE_LINE: Final = _PATTERNS["page_line"]
MAX_PAGE_CHARACTERS: Final = 40

MAX_COPYRIGHT_WORDS: Final = 25  #: Maximum words of a copyright line; a longer one is prose about copyright.
COPYRIGHT: Final = _PATTERNS["copyright"]
RIGHTS_RESERVED: Final = _PATTERNS["rights_reserved"]
MADE_WITH: Final = _PATTERNS["made_with"]
MAX_MADE_WITH_CHARACTERS: Final = 80

#: A cookie banner states that cookies are used, and requests consent. A page about cookies does only the first.
COOKIES_USED: Final = _PATTERNS["cookies_used"]
COOKIES_ASKED: Final = _PATTERNS["cookies_asked"]

MIN_DISCLAIMER_CHARACTERS: Final = 60
#: Every match of MAIL_SELF contains one of these; searching for them first is many times faster.
MAIL_HINTS: Final = (
    "mail", "message", "communication", "transmission", "nachricht", "courriel", "courrier", "mensaje", "correo",
)  # fmt: skip
#: Phrases for the e-mail in such a disclaimer, and for its recipients.
MAIL_SELF: Final = _PATTERNS["mail_self"]
MAIL_DISCLAIMED: Final = _PATTERNS["mail_disclaimed"]
