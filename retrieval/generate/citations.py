"""Reading the [N] markers of an answer, also while it is still being written. Pure."""

import re
from typing import Final

from retrieval.generate.types import Citation

_FENCED: Final = r"^[ >]*(?P<fence>`{3,}|~{3,}).*?(?:\n[ >]*(?P=fence)[`~]*|\Z)"
_INLINE_CODE: Final = r"(?<!`)(?P<ticks>`+)(?!`)[^\n]*?(?<!`)(?P=ticks)(?!`)"
_OPEN_CODE: Final = r"(?<!`)`+(?!`)[^\n]*\Z"
_ESCAPED: Final = r"\\\["
_NUMBER: Final = r"\[(?P<number>[1-9][0-9]{0,2})\](?!\()"
_FLAGS: Final = re.MULTILINE | re.DOTALL

#: What is skipped comes first: code, `\[1]`. The link `[1](address)` is no marker. Inline code ends with its line.
_FINISHED: Final = re.compile(f"{_FENCED}|{_INLINE_CODE}|{_ESCAPED}|{_NUMBER}", _FLAGS)
#: As above, and an open backtick hides the rest of its line, which may turn out to be code.
_UNFINISHED: Final = re.compile(f"{_FENCED}|{_INLINE_CODE}|{_OPEN_CODE}|{_ESCAPED}|{_NUMBER}", _FLAGS)
_BEGUN_MARKER: Final = re.compile(r"\[[0-9]{0,3}\Z")
_BRACKETED_NUMBER: Final = re.compile(r"\[(?=[0-9]+\])")


def find_citations(text: str, passage_count: int) -> tuple[Citation, ...]:
    """Return the markers of passages 1 to `passage_count`, in order; other numbers are plain text."""
    return _markers(_FINISHED, text, passage_count)


def settled_citations(text: str, passage_count: int) -> tuple[Citation, ...]:
    """Return the markers that stay markers whatever is written after `text`."""
    # A marker at the very end could still become a link.
    found = _markers(_UNFINISHED, text, passage_count)
    return tuple(citation for citation in found if citation.end < len(text))


def _markers(pattern: re.Pattern[str], text: str, passage_count: int) -> tuple[Citation, ...]:
    return tuple(
        Citation(int(match["number"]), *match.span())
        for match in pattern.finditer(text)
        if match["number"] and int(match["number"]) <= passage_count
    )


def sendable_length(text: str) -> int:
    """Return how much of an unfinished text can be sent without cutting a marker in two."""
    begun = _BEGUN_MARKER.search(text)
    return begun.start() if begun else len(text)


def escape_markers(text: str) -> str:
    """Return quoted text with a backslash before every bracketed number, so that it is not taken for a citation."""
    return _BRACKETED_NUMBER.sub(r"\\[", text)
