"""Traits of a chunk's text that are stored with it; the kinds of its content are found by simple rules. Pure."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from retrieval.text.document import ChunkDraft
from retrieval.text.fingerprints import minhash
from retrieval.text.language import language_of

_MIN_ROWS: Final = 3
_MIN_ITEMS: Final = 3
_MIN_CODE_LINES: Final = 2
_CODE_SHARE: Final = 0.4
_TABLE_ROW: Final = re.compile(r"^[^\S\n]*+\|.*\|[^\S\n]*+$|^[^|\n]*\S \| [^\n]*$", re.MULTILINE)
_FENCE: Final = re.compile(r"^[^\S\n]*+(?:```|~~~)", re.MULTILINE)
_CODE_LINE: Final = re.compile(
    r"^\s*(?:(?:async\s+)?def\s+\w+\(|class\s+\w+|import\s+\w+|from\s+[\w.]+\s+import\s|#include\s|(?:public|private|"
    r"static)\s|func\s+\w|fn\s+\w|return\b|if\s*\(.*\{|\}|[\w.\[\]\"']+\s*=\s*\S.*|[\w.]+\(.*\)?;?$|SELECT\s|\$\s+\w|"
    r"\"[\w. -]+\"\s*:|[{\[(}\])]+[,;]?\s*$|(?:GET|POST|PUT|DELETE|PATCH)\s+/)"
)
_BULLET: Final = re.compile(r"^[^\S\n]*+[-*+\u2022]\s+\S", re.MULTILINE)
_NUMBERED: Final = re.compile(r"^[^\S\n]*+(?:step\s+)?\d{1,2}[.):]\s+\S", re.MULTILINE | re.IGNORECASE)
_DEFINITION: Final = re.compile(
    r"(?:^|[.\n][^\S\n]*+)(?:(?:an?|the)\s+)?[\"\u201c*_`]{0,2}[A-Z][\w /-]{1,50}?[\"\u201d*_`]{0,2}\s+"
    r"(?:means(?! that\b)|refers to|is defined as|stands for"
    r"|is (?:an?|the)\s+(?:\w+\s+){0,4}(?:that|which|used|for|of)\b)"
)
_QUESTION: Final = re.compile(
    r"^[^\S\n]*+(?:#+\s*|\*\*)?(?:Q(?:uestion)?\s*[:.]\s|\S.{8,150}\?(?:\*\*)?\s*$)", re.MULTILINE
)
_E_MAIL: Final = re.compile(r"(?<![\w.+-])[\w.+-]++@[\w-]++(?:\.[\w-]++)+")
_PHONE: Final = re.compile(
    r"(?:\btel|\bphone|\bfax|\bcall|\bmobile|\u260e)\W{1,3}.{0,20}?\+?\d[\d ()/.-]{6,}\d", re.IGNORECASE
)
_INTERNATIONAL: Final = re.compile(r"(?<!\w)\+\d{1,3}[ (-]\d[\d ()/.-]{5,}\d")
_AMOUNT: Final = re.compile(r"(?:[$\u20ac\u00a3\u00a5]\s?\d|\d\s?(?:%|\u20ac|percent\b|million\b|billion\b))")
_MIN_AMOUNTS: Final = 3


@dataclass(frozen=True, slots=True)
class ChunkTraits:
    """Traits of one chunk's text."""

    #: The encoding of bytes when traits pass between processes.
    __pydantic_config__: ClassVar = {"ser_json_bytes": "base64", "val_json_bytes": "base64"}
    language: str = ""  #: "english"; empty if not detected.
    hints: tuple[str, ...] = ()  #: table, code, definition ... in alphabetical order.
    minhash: bytes = b""  #: MinHash signature, 128 bytes; empty for a text without words.


def traits_of(draft: ChunkDraft, *, source_type: str) -> ChunkTraits:
    """Return the traits of a chunk of a document of a canonical source type."""
    return ChunkTraits(
        language="" if source_type == "code" else language_of(draft.text),
        hints=hints_of(draft.text, heading_path=draft.heading_path, source_type=source_type),
        minhash=minhash(draft.text),
    )


def hints_of(text: str, *, heading_path: Sequence[str] = (), source_type: str = "") -> tuple[str, ...]:
    """Return the kinds of content in a chunk, in alphabetical order.

    Kinds: `code`, `contact` (an e-mail address or a phone number), `definition`, `figures` (amounts of money, shares),
    `list`, `question` (with its answer, or in the heading), `steps` (numbered), `table`.
    """
    found = {name for name, matches in _RULES.items() if matches(text)}
    if source_type == "code":
        found.add("code")
    if source_type in {"csv", "excel"}:
        found.add("table")
    if any(heading.rstrip().endswith("?") for heading in heading_path[-1:]):
        found.add("question")
    return tuple(sorted(found))


def _has_code(text: str) -> bool:
    if _FENCE.search(text):
        return True
    lines = [line for line in text.splitlines() if line.strip()]
    code = sum(bool(_CODE_LINE.match(line)) for line in lines)
    return code >= _MIN_CODE_LINES and code >= _CODE_SHARE * len(lines)


_RULES: Final[Mapping[str, Callable[[str], bool]]] = {
    "code": _has_code,
    "contact": lambda text: any(pattern.search(text) for pattern in (_E_MAIL, _PHONE, _INTERNATIONAL)),
    "definition": lambda text: bool(_DEFINITION.search(text)),
    "figures": lambda text: len(_AMOUNT.findall(text)) >= _MIN_AMOUNTS,
    "list": lambda text: len(_BULLET.findall(text)) >= _MIN_ITEMS,
    "question": lambda text: bool(_QUESTION.search(text)),
    "steps": lambda text: len(_NUMBERED.findall(text)) >= _MIN_ITEMS,
    "table": lambda text: len(_TABLE_ROW.findall(text)) >= _MIN_ROWS,
}
HINTS: Final = frozenset(_RULES)
