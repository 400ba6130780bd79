"""Links that a text states outright: those its author set, and those a language model read in it. Pure."""

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

#: Of a kind in one chunk: what a page of a hundred links says of each of them is little.
_MAX_STATED: Final = 64


class StatedKind(StrEnum):
    """Who states it: its author by a hyperlink, or a language model that read it."""

    HYPERLINK = "hyperlink"
    TRIPLE = "triple"


@dataclass(frozen=True, slots=True)
class Stated:
    """One end of a stated link."""

    kind: StatedKind
    #: Of the address or the name that it leads to, as it is stored.
    key: int
    #: What a reader sees of it.
    name: str
    #: What it says; empty where that is the text around it.
    sentence: str = ""


@dataclass(frozen=True, slots=True)
class Meeting:
    """A stated link with a document that has its key."""

    source: ChunkId
    target: UUID
    stated: Stated
    #: How surely the key means the document, 0 to 1.
    quality: float


def stated_by_links(links: Sequence[Sequence[str]], place: Place) -> tuple[Stated, ...]:
    """Return the ends of a chunk's links, [text, target] each, but those that lead to its own document."""
    own = set(place.addresses)
    addresses = ((text, address) for text, target in links for address in place.targets(target) if address not in own)
    return _first(Stated(StatedKind.HYPERLINK, number_of(address), text) for text, address in addresses)


def stated_by_triples(triples: Sequence[Sequence[str]]) -> tuple[Stated, ...]:
    """Return the ends of a chunk's triples: both, for either may be the name of another document."""
    ends = ((end, " ".join(triple)) for triple in triples for end in (triple[2], triple[0]))
    return _first(Stated(StatedKind.TRIPLE, number_of(key_of(end)), end, sentence) for end, sentence in ends)


def stated_links(meetings: Sequence[Meeting], texts: Mapping[ChunkId, str]) -> list[Edge]:
    """Return the links of these meetings, the surest per pair of documents; `texts` are the sources'.

    A key that is the source's own as well, or that more than eight documents have, leads nowhere; another counts
    1 / sqrt(documents).
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
    """Return the first of each key, as many as are kept."""
    kept: dict[int, Stated] = {}
    for it in stated:
        kept.setdefault(it.key, it)
    return tuple(islice(kept.values(), _MAX_STATED))
