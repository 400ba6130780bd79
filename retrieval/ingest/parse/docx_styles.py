"""What the paragraph styles of a Word document mean: heading of a level, list item, table of contents."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from docx.oxml.ns import qn
from lxml.etree import _Element

_HEADING: Final = re.compile(r"heading\s*([1-9])")
_TITLE_NAMES: Final = frozenset({"title"})
_DEEPEST_HEADING: Final = 6
#: Styles build on styles; a longer chain is a circle.
_MAX_ANCESTORS: Final = 20


@dataclass(frozen=True, slots=True)
class Style:
    """One paragraph style."""

    name: str
    parent: str
    #: Depth in the outline from 1, 0 for body text.
    outline_level: int
    is_list: bool


class Styles:
    """The paragraph styles of one document by their ids."""

    def __init__(self, definitions: _Element) -> None:
        self._styles = {
            element.get(qn("w:styleId"), ""): _style(element) for element in definitions.iter(qn("w:style"))
        }

    def heading_level(self, style_id: str) -> int:
        """Return 1 to 6 for a heading style, 0 for any other."""
        for style in self._chain(style_id):
            named = _HEADING.match(style.name)
            level = 1 if style.name in _TITLE_NAMES else int(named[1]) if named else style.outline_level
            if level:
                return min(level, _DEEPEST_HEADING)
        return 0

    def is_list(self, style_id: str) -> bool:
        """Return True for a style whose paragraphs are numbered or have bullets."""
        return any(style.is_list for style in self._chain(style_id))

    def is_contents(self, style_id: str) -> bool:
        """Return True for an entry of the table of contents, which only repeats the headings."""
        return any(style.name.startswith("toc ") for style in self._chain(style_id))

    def _chain(self, style_id: str) -> Iterator[Style]:
        for _ in range(_MAX_ANCESTORS):
            style = self._styles.get(style_id)
            if style is None:
                return
            yield style
            style_id = style.parent


def outline_level(properties: _Element | None) -> int:
    """Return the outline level from 1 that paragraph properties set, 0 when they set none."""
    written = _value(properties, "w:outlineLvl")
    level = int(written) + 1 if written.isdecimal() else 0
    return level if level <= _DEEPEST_HEADING else 0


def _style(element: _Element) -> Style:
    properties = element.find(qn("w:pPr"))
    name = _value(element, "w:name").lower()
    is_numbered = properties is not None and properties.find(qn("w:numPr")) is not None
    return Style(
        name=name,
        parent=_value(element, "w:basedOn"),
        outline_level=outline_level(properties),
        is_list=is_numbered or name.startswith("list"),
    )


def _value(parent: _Element | None, tag: str) -> str:
    child = None if parent is None else parent.find(qn(tag))
    return "" if child is None else str(child.get(qn("w:val"), ""))
