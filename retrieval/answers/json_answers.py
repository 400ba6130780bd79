"""Answers in JSON: passed on unchanged, with the citations in their strings. Pure."""

import json
import re
from typing import Final

from retrieval.errors import AnswerFormatError
from retrieval.llm.citations import find_citations
from retrieval.llm.types import Citation

_STRING: Final = re.compile(r'"(?P<content>(?:[^"\\]|\\(?:.|\Z))*+)(?:"|\Z)(?P<key>\s*+:)?', re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED: Final = {"\\n": "\n ", "\\r": "\n ", "\\t": "  "}
_NUMBER: Final = re.compile(r"-?[0-9][0-9.eE+-]*+")
_NOT_LINE_BREAK: Final = re.compile(r"[^\n]")
_NO_JSON: Final = "The language model did not answer in JSON: it does not support this response_format."


class JsonDraft:
    """An answer in JSON in progress, as `Draft` for text; raises AnswerFormatError for text that is no JSON."""

    removed = 0

    def __init__(self, passage_count: int) -> None:
        self.text = ""
        self.citations: tuple[Citation, ...] = ()
        self._passage_count = passage_count

    def add(self, piece: str) -> tuple[str, tuple[Citation, ...]]:
        """Return the text unchanged."""
        fresh = piece if self.text else piece.lstrip()
        if fresh and not self.text and fresh[0] not in "{[":
            raise AnswerFormatError(_NO_JSON)
        self.text += fresh
        return fresh, ()

    def finish(self) -> tuple[str, tuple[Citation, ...]]:
        """Return the first citations of the passages."""
        self.citations = find_citations(prose_of(self.text), self._passage_count)
        first: dict[int, Citation] = {}
        for citation in self.citations:
            first.setdefault(citation.number, citation)
        return "", tuple(first.values())

    def require_complete(self) -> None:
        """Raise AnswerFormatError if the text is not JSON."""
        try:
            json.loads(self.text)
        except (ValueError, RecursionError):
            raise AnswerFormatError(_NO_JSON) from None


def prose_of(text: str) -> str:
    """Return the strings and numbers of JSON, each as a paragraph at its position; keys are left out.

    The result has the length of the text.
    """
    parts: list[str] = []
    place = 0
    for found in _STRING.finditer(text):
        parts.append(_numbers_in(text[place : found.start()]))
        inside = found["content"]
        is_key = found["key"] is not None
        parts.append("\n" + (_NOT_LINE_BREAK.sub(" ", inside) if is_key else _ESCAPE.sub(_unescaped, inside)) + "\n")
        parts.append(" " * len(found["key"] or ""))
        place = found.end()
    parts.append(_numbers_in(text[place:]))
    return "".join(parts)


def strings_of(text: str) -> list[str]:
    """Return the strings of JSON, without keys."""
    return [line.strip() for line in prose_of(text).splitlines() if line.strip()]


def _numbers_in(structure: str) -> str:
    """Return the numbers between two strings, each in a paragraph."""
    parts: list[str] = []
    place = 0
    for found in _NUMBER.finditer(structure):
        parts += ("\n" * (found.start() - place), found[0])
        place = found.end()
    return "".join((*parts, "\n" * (len(structure) - place)))


def _unescaped(found: re.Match[str]) -> str:
    escape = found[0]
    char = _ESCAPED.get(escape) or (chr(int(f"0x{escape[2:]}", 0)) if escape.startswith("\\u") else escape[1])
    return char.ljust(len(escape))
