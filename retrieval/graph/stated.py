"""Explicit links of a text: hyperlinks, and triples of a language model. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from math import sqrt
from typing import Final
from uuid import UUID

from retrieval.engine.types import ChunkId
from retrieval.graph.addresses import Place
from retrieval.graph.links import MAX_SHARING, Edge
from retrieval.graph.spans import key_of, number_of, sentence_around

#: Maximum number of a kind in one chunk: pages with many links say little about each.
_MAX_STATED: Final = 64


class StatedKind(StrEnum):
    """The origin of a link."""

    HYPERLINK = "hyperlink"
    TRIPLE = "triple"


@dataclass(frozen=True, slots=True)
class Stated:
    """One end of an explicit link."""

    kind: StatedKind
    #: Stored key of the target's address or name.
    key: int
    name: str
    #: Its statement; empty for the text around it.
    sentence: str = ""


@dataclass(frozen=True, slots=True)
class Meeting:
    """An explicit link with a document that has its key."""

    source: ChunkId
    target: UUID
    stated: Stated
    #: Certainty that the key means the document, 0 to 1.
    quality: float


def stated_by_links(links: Sequence[Sequence[str]], place: Place) -> tuple[Stated, ...]:
    """Return the ends of a chunk's links, [text, target] each, except those within its document."""
    own = set(place.addresses)
    addresses = ((text, address) for text, target in links for address in place.targets(target) if address not in own)
    return _first(Stated(StatedKind.HYPERLINK, number_of(address), text) for text, address in addresses)


def stated_by_triples(triples: Sequence[Sequence[str]]) -> tuple[Stated, ...]:
    """Return both ends of a chunk's triples, since either may be the name of another document."""
    ends = ((end, " ".join(triple)) for triple in triples for end in (triple[2], triple[0]))
    return _first(Stated(StatedKind.TRIPLE, number_of(key_of(end)), end, sentence) for end, sentence in ends)


def stated_links(meetings: Sequence[Meeting], texts: Mapping[ChunkId, str]) -> list[Edge]:
    """Return the links, the most certain of each pair of documents; `texts` are those of the sources.

    A key that the source shares, or that more than eight documents have, is ignored. The weight is
    quality / sqrt(documents).
    """
    targets: dict[int, set[UUID]] = defaultdict(set)
    for meeting in meetings:
        targets[meeting.stated.key].add(meeting.target)
    edges: dict[tuple[UUID, UUID, str], Edge] = {}
    for meeting in meetings:
        stated, source, bearers = meeting.stated, meeting.source.document_id, targets[meeting.stated.key]
        pair = (source, meeting.target, stated.kind)
        weight = meeting.quality / sqrt(len(bearers))
        if len(bearers) > MAX_SHARING or source in bearers or (pair in edges and edges[pair].weight >= weight):
            continue
        text = texts.get(meeting.source, "")
        start = text.find(stated.name)
        around = sentence_around(text, start, start + len(stated.name)) if start >= 0 else ""
        edges[pair] = Edge(
            meeting.source, meeting.target, stated.kind.value, stated.name, weight, stated.sentence or around
        )
    return list(edges.values())


def _first(stated: Iterable[Stated]) -> tuple[Stated, ...]:
    found: dict[int, Stated] = {}
    for it in stated:
        found.setdefault(it.key, it)
    return tuple(islice(found.values(), _MAX_STATED))
