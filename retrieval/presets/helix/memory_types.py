"""The memory type of a document. Pure.

A remembered item has its stored type. Other documents are classified by source type (code, mail) and by words in title,
address, connection name and headings; the default is semantic.
"""

import math
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from retrieval.engine.types import ChunkFacts, MemoryType

#: Source types that are program text, as the parsers name them.
_CODE_TYPES: Final = frozenset({"code", "notebook"})
_MAIL_TYPES: Final = frozenset({"email"})


def _words(*words: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![^\W_])(?:{'|'.join(words)})(?![^\W_])", re.IGNORECASE)


_DECISION: Final = _words(
    r"adrs?", r"adr[-_ ]?\d+", r"rfcs?", r"rfc[-_ ]?\d+", "decisions?", r"decision[-_ ]records?", "rationale"
)
_PROCEDURE: Final = _words(
    r"how[-_ ]?tos?", r"how[-_ ]to", "runbooks?", "playbooks?", "procedures?", "tutorials?", "checklists?", "manuals?",
    "sops?", r"step[-_ ]by[-_ ]step", "guides?", "instructions?", "onboarding",
)  # fmt: skip
_EPISODE: Final = _words(
    "incidents?", r"inc[-_ ]\d[\w-]*", r"post[-_ ]?mortems?", "outages?", "meetings?", r"minutes of", "standups?",
    "retros?", "retrospectives?", "inbox", "tickets?", "journals?", "diary", "changelog", r"call[-_ ]notes",
    "transcripts?", r"(?:19|20)\d\d-\d\d-\d\d",
)  # fmt: skip
#: In this order: the minutes of a decision are a decision, the runbook of an incident a procedure.
_NAMED: Final = ((MemoryType.DECISION, _DECISION), (MemoryType.PROCEDURAL, _PROCEDURE), (MemoryType.EPISODIC, _EPISODE))
_TYPES: Final = frozenset(it.value for it in MemoryType)
_CACHED: Final = 20_000


def memory_type_of(chunk: ChunkFacts, *, connection: str = "") -> MemoryType:
    """Return a chunk's memory type by its title, then its address, its connection, its headings."""
    if chunk.memory_kind in _TYPES:
        return MemoryType(chunk.memory_kind)
    if chunk.source_type in _CODE_TYPES:
        return MemoryType.CODE
    if chunk.source_type in _MAIL_TYPES:
        return MemoryType.EPISODIC
    # Scheme and host name a place and not a thing.
    path = re.sub(r"^[a-z][\w+.-]*://[^/]*", "", chunk.uri)
    return _said((chunk.title, path, connection, " / ".join(chunk.heading_path)))


@lru_cache(_CACHED)
def _said(texts: tuple[str, ...]) -> MemoryType:
    found = (memory_type for text in texts for memory_type, words in _NAMED if words.search(text))
    return next(found, MemoryType.SEMANTIC)


def prevailing(found: Iterable[tuple[MemoryType, float]], *, min_share: float) -> MemoryType | None:
    """Return the memory type with at least this share of the total weight of (type, weight) pairs; else None."""
    weights: dict[MemoryType, float] = {}
    for memory_type, weight in found:
        weights[memory_type] = weights.get(memory_type, 0.0) + weight
    best = max(weights, key=lambda it: (weights[it], it), default=None)
    total = math.fsum(weights.values())
    return best if best is not None and total > 0 and weights[best] >= min_share * total else None
