"""The numbers of list items in Word documents, which count while a document is read."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from docx.document import Document
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.oxml.ns import qn
from docx.oxml.parser import parse_xml
from lxml.etree import _Element

BULLET: Final = "-"
_LETTERS: Final = frozenset({"lowerLetter", "upperLetter"})
_UNNUMBERED: Final = frozenset({"bullet", "none"})
_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz"
_MAX_DIGITS: Final = 5


@dataclass(frozen=True, slots=True)
class _Level:
    format: str
    start: int


class Numbering:
    """Counts the items of a document's lists. Lists of one definition count on, unless one says that it starts anew."""

    def __init__(self, document: Document) -> None:
        self._lists: dict[str, str] = {}
        self._levels: dict[tuple[str, int], _Level] = {}
        self._starts: dict[tuple[str, int], int] = {}
        self._counts: defaultdict[str, dict[int, int]] = defaultdict(dict)
        for related in document.part.rels.values():
            if related.reltype == RELATIONSHIP_TYPE.NUMBERING and not related.is_external:
                self._read(parse_xml(related.target_part.blob))

    def marker(self, list_id: str, level: int) -> str:
        """Return the number or letter of the next item of a list, or the bullet of one without numbers."""
        definition = self._lists.get(list_id, "")
        found = self._levels.get((definition, level))
        if found is None or found.format in _UNNUMBERED:
            return BULLET
        counts = self._counts[definition]
        anew = self._starts.pop((list_id, level), None)
        counts[level] = anew if anew is not None else counts.get(level, found.start - 1) + 1
        for deeper in [it for it in counts if it > level]:
            del counts[deeper]
        number = counts[level]
        is_letter = found.format in _LETTERS and 0 < number <= len(_ALPHABET)
        return f"{_ALPHABET[number - 1] if is_letter else number}."

    def _read(self, numbering: _Element) -> None:
        for definition in numbering.iter(qn("w:abstractNum")):
            for level, element in _by_level(definition, "w:lvl"):
                written = _value(element.find(qn("w:numFmt"))) or "decimal"
                key = (definition.get(qn("w:abstractNumId"), ""), level)
                self._levels[key] = _Level(written, _number(element.find(qn("w:start")), 1))
        for instance in numbering.iter(qn("w:num")):
            list_id = instance.get(qn("w:numId"), "")
            self._lists[list_id] = _value(instance.find(qn("w:abstractNumId")))
            for level, override in _by_level(instance, "w:lvlOverride"):
                start = override.find(qn("w:startOverride"))
                if start is not None:
                    self._starts[list_id, level] = _number(start, 1)


def _by_level(parent: _Element, tag: str) -> Iterator[tuple[int, _Element]]:
    for element in parent.iterchildren(qn(tag)):
        level = element.get(qn("w:ilvl"), "")
        if level.isdecimal():
            yield int(level), element


def _value(element: _Element | None) -> str:
    return "" if element is None else str(element.get(qn("w:val"), ""))


def _number(element: _Element | None, default: int) -> int:
    written = _value(element)
    return int(written) if written.isdecimal() and len(written) <= _MAX_DIGITS else default
