"""How well a chunk represents the topic of its document, from its words and its position. Pure.

A mean of four shares, each from 0 to 1:

- terms: the share of the idf of the document's most distinctive terms that the chunk contains. These terms are the 20
  with the highest occurrences x idf; idf = ln(1 + chunks of the connection / chunks that contain the term).
- title: the share of the title's terms that the chunk's text contains.
- headings: the same for the terms of its heading path.
- position: 1 for a document's first chunk, decreasing linearly to 1 / chunks for its last.

A share without terms (no title, no headings, no distinctive terms) is left out of the weighted mean.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

MAX_DISTINCTIVE: Final = 20
_WEIGHTS: Final[Mapping[str, float]] = MappingProxyType(
    {"terms": 0.5, "position": 0.2, "title": 0.15, "headings": 0.15}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SalienceFacts:
    """The inputs for a chunk's salience; shares from 0 to 1, None for a share without terms."""

    terms: float | None
    title: float | None
    headings: float | None
    place: int  #: Its position in the document, from 0, and the document's number of chunks.
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
