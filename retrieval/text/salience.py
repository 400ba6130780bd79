"""How much a chunk says of what its document is about, from its words and its place alone. Pure.

A mean of four shares, each from 0 to 1:

- terms: of the idf of the document's most distinctive terms, the part that stands in the chunk. A document's most
  distinctive terms are the 20 with the highest occurrences x idf; idf = ln(1 + chunks of the connection / chunks that
  hold the term).
- title: of the title's terms, the part that stands in the chunk's text.
- headings: the same of its heading path's terms.
- position: 1 for a document's first chunk, falling in a straight line to 1 / chunks for its last.

A share of nothing (no title, no headings, no distinctive terms) is left out and the others count for it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

#: Distinctive terms that a document has at the most.
MAX_DISTINCTIVE: Final = 20
_WEIGHTS: Final[Mapping[str, float]] = MappingProxyType(
    {"terms": 0.5, "position": 0.2, "title": 0.15, "headings": 0.15}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SalienceFacts:
    """What is known of a chunk; shares from 0 to 1, None for a share of nothing."""

    terms: float | None
    title: float | None
    headings: float | None
    #: Its place in the document, from 0, and how many chunks the document has.
    place: int
    chunks: int


def salience_of(facts: SalienceFacts) -> float:
    """Return a chunk's salience, 0 to 1."""
    shares = {
        "terms": facts.terms,
        "position": 1 - facts.place / facts.chunks,
        "title": facts.title,
        "headings": facts.headings,
    }
    known = {name: share for name, share in shares.items() if share is not None}
    total = sum(_WEIGHTS[name] * share for name, share in known.items())
    return min(1.0, max(0.0, total / sum(_WEIGHTS[name] for name in known)))
