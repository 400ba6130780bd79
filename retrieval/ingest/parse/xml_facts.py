"""What the small XML parts of a file say about it: title, author, dates."""

from collections.abc import Mapping
from typing import IO, Final

from retrieval.ingest.parse.xml_stream import Handlers, read_events

#: Dublin Core and what Office and OpenDocument put beside it, by element name.
_FACTS: Final = {
    "title": "title",
    "creator": "author",
    "initial-creator": "author",
    "publisher": "publisher",
    "subject": "subject",
    "keywords": "keywords",
    "keyword": "keywords",
    "language": "language",
    "created": "created",
    "creation-date": "created",
    "date": "date",
    "modified": "modified",
    "identifier": "identifier",
}
_DATES: Final = frozenset({"created", "modified", "date"})
_MAX_LENGTH: Final = 500
_ISO_DATE_LENGTH: Final = len("2024-03-31")


class _Facts:
    def __init__(self) -> None:
        self.found: dict[str, str] = {}
        self._key = ""
        self._parts: list[str] = []

    def start(self, name: str, _: Mapping[str, str]) -> None:
        self._key = _FACTS.get(name, "")
        self._parts = []

    def text(self, text: str) -> None:
        if self._key and sum(map(len, self._parts)) < _MAX_LENGTH:
            self._parts.append(text)

    def end(self, _: str) -> None:
        value = "".join(self._parts).strip()
        if self._key and value:
            self.found.setdefault(self._key, value[:_ISO_DATE_LENGTH] if self._key in _DATES else value)
        self._key = ""


def facts_in(stream: IO[bytes]) -> dict[str, str]:
    """Return the facts of a properties part by their usual names, the first of each; dates as ISO days."""
    facts = _Facts()
    read_events(stream, Handlers(start=facts.start, end=facts.end, text=facts.text))
    return facts.found
