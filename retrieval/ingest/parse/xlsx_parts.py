"""The parts of an Excel workbook around its sheets: relationships, sheet list, shared strings, styles."""

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from retrieval.ingest.parse.grid import kind_of
from retrieval.ingest.parse.number_format import Clock, NumberFormat, built_in, number_format
from retrieval.ingest.parse.xml_reading import EventReader

_TRUE: Final = frozenset({"1", "true", "on"})
_READING: Final = "rPh"  #: Phonetic readings of East Asian words.


class Relations(EventReader):
    """The parts of a file by id and by type, from a relationships part."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self.by_id: dict[str, str] = {}
        self.by_kind: dict[str, str] = {}  #: By the last word of the relationship's type, such as `styles`.

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Read a relationship; targets outside the file are ignored."""
        if name == "Relationship" and attributes.get("TargetMode") != "External":
            target = attributes.get("Target", "")
            path = posixpath.normpath(posixpath.join("/" + self._folder, target)).lstrip("/")
            self.by_id[attributes.get("Id", "")] = path
            self.by_kind.setdefault(attributes.get("Type", "").rpartition("/")[2], path)


@dataclass(slots=True)
class Workbook(EventReader):
    """The list of sheets, each with its name, its relation and whether it is hidden, and the calendar."""

    sheets: list[tuple[str, str, bool]] = field(default_factory=list)
    clock: Clock = Clock.SINCE_1900

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Read an element of the workbook part."""
        if name == "sheet":
            relation = next((value for key, value in attributes.items() if key.endswith(":id")), "")
            is_hidden = attributes.get("state", "visible") != "visible"
            self.sheets.append((attributes.get("name", ""), relation, is_hidden))
        elif name == "workbookPr" and attributes.get("date1904", "").lower() in _TRUE:
            self.clock = Clock.SINCE_1904


class SharedStrings(EventReader):
    """The texts that cells refer to by number."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.kinds: list[str] = []
        self._parts: list[str] = []
        self._is_text = self._is_reading = False

    def start(self, name: str, attributes: Mapping[str, str]) -> None:  # noqa: ARG002 -- the reader's signature
        """Begin an item or a run of text."""
        if name == "si":
            self._parts = []
        elif name == _READING:
            self._is_reading = True
        self._is_text = name == "t" and not self._is_reading

    def text(self, text: str) -> None:
        """Read text of a run."""
        if self._is_text:
            self._parts.append(text)

    def end(self, name: str) -> None:
        """End a run or an item."""
        self._is_text = False
        if name == _READING:
            self._is_reading = False
        elif name == "si":
            self.texts.append("".join(self._parts))
            self.kinds.append(kind_of(self.texts[-1]))


@dataclass(frozen=True, slots=True)
class Style:
    """The number format and weight of a cell style."""

    format: NumberFormat
    is_bold: bool


PLAIN: Final = Style(number_format("General"), is_bold=False)


class Styles(EventReader):
    """The cell styles by their number."""

    def __init__(self) -> None:
        self._codes: dict[int, str] = {}
        self._bold_fonts: list[bool] = []
        self._formats: list[tuple[int, int]] = []
        self._parent = ""

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Read an element of the styles part."""
        if name in ("fonts", "cellXfs", "cellStyleXfs", "dxfs"):
            self._parent = name
        elif name == "numFmt" and self._parent != "dxfs":
            self._codes[_number(attributes, "numFmtId")] = attributes.get("formatCode", "")
        elif name == "font" and self._parent == "fonts":
            self._bold_fonts.append(False)
        elif name == "b" and self._parent == "fonts" and self._bold_fonts:
            self._bold_fonts[-1] = attributes.get("val", "1").lower() in _TRUE
        elif name == "xf" and self._parent == "cellXfs":
            self._formats.append((_number(attributes, "numFmtId"), _number(attributes, "fontId")))

    def styles(self) -> list[Style]:
        """Return the styles in the order of their numbers."""
        return [
            Style(
                number_format(self._codes.get(code) or built_in(code)),
                is_bold=font < len(self._bold_fonts) and self._bold_fonts[font],
            )
            for code, font in self._formats
        ]


def _number(attributes: Mapping[str, str], name: str) -> int:
    written = attributes.get(name, "")
    return int(written) if written.isascii() and written.isdecimal() and len(written) <= len("99999") else 0
