"""Links between documents: by names in the seeds' texts, hyperlinks, and triples of a language model. Pure."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice
from math import log2, sqrt
from typing import Final, NamedTuple
from uuid import UUID

from retrieval.engine.quick import quick
from retrieval.engine.types import ChunkId
from retrieval.graph.addresses import Place
from retrieval.graph.mentions import Mentions, Occurrence, occurrences, phrase_places
from retrieval.graph.question import KnownName
from retrieval.graph.spans import key_of, number_of, sentence_around

MAX_SHARING: Final = 8  #: Maximum number of documents that share a name; a more common name is ignored.
_SHARED: Final = 0.5  #: Weight of a shared name, relative to a document's name.
LINK: Final = "link"
SHARED_NAME: Final = "shared_name"
_MAX_STATED: Final = 64  #: Maximum number of a kind in one chunk: pages with many links say little about each.


@dataclass(frozen=True, slots=True)
class SeedText:
    """A chunk of a seed, where links start."""

    chunk: ChunkId
    text: str
    mentions: Mentions
    section: tuple[int, int] = (0, 0)  #: First and last ordinal of its section, inclusive.


class Holder(NamedTuple):
    """A chunk with a phrase of the seeds."""

    document: str  #: Its id as text.
    ordinal: int
    key: int  #: Of the phrase.


@quick
@dataclass(frozen=True, slots=True)
class Edge:
    """A link from a chunk of a seed to another document."""

    source: ChunkId
    target: UUID
    kind: str
    name: str
    weight: float  #: Its certainty: quality / sqrt(documents with that name); for a shared name 0.5 / log2(n + 1).
    sentence: str = ""  #: The sentence of the seed with the name.
    target_chunk: ChunkId | None = None


def name_links(seeds: Sequence[SeedText], known: Sequence[KnownName]) -> list[Edge]:
    """Return the most certain link of each pair by a name that at most eight documents, not the seed, have."""
    bearers: dict[str, list[KnownName]] = defaultdict(list)
    for name in known:
        bearers[name.key].append(name)
    edges: dict[tuple[UUID, UUID], Edge] = {}
    numbers = {number_of(key): key for key in bearers}
    for seed in seeds:
        held = {numbers[number] for number in seed.mentions.keys if number in numbers}
        for edge in _links_of(seed, held, bearers):
            pair = (edge.source.document_id, edge.target)
            if pair not in edges or edges[pair].weight < edge.weight:
                edges[pair] = edge
    return list(edges.values())


def _links_of(seed: SeedText, held: set[str], bearers: Mapping[str, Sequence[KnownName]]) -> Iterable[Edge]:
    own = seed.chunk.document_id
    for place in occurrences(seed.text, held):
        names = bearers[place.key]
        if len(names) > MAX_SHARING or any(name.document_id == own for name in names):
            continue
        sentence = sentence_around(seed.text, place.start, place.end)
        said = seed.text[place.start : place.end]
        for name in names:
            weight = name.quality / sqrt(len(names))
            yield Edge(seed.chunk, name.document_id, LINK, said, weight, sentence)


def shared_name_links(seeds: Sequence[SeedText], holders: Sequence[Holder]) -> list[Edge]:
    """Return what `unnamed_shared_links` does, with phrase and sentence, for which the texts are read again."""
    texts = {seed.chunk: seed.text for seed in seeds}
    shared = _shared(seeds, holders)
    wanted: dict[ChunkId, set[int]] = defaultdict(set)
    for edge, key in shared:
        wanted[edge.source].add(key)
    places = {source: _first_places(texts[source], keys) for source, keys in wanted.items()}
    found = []
    for edge, key in shared:
        text, place = texts[edge.source], places[edge.source].get(key)
        if place is not None:
            sentence = sentence_around(text, place.start, place.end)
            edge = replace(edge, name=text[place.start : place.end], sentence=sentence)  # noqa: PLW2901 -- the same link
        found.append(edge)
    return found


def _first_places(text: str, keys: Collection[int]) -> dict[int, Occurrence]:
    found: dict[int, Occurrence] = {}
    for place in phrase_places(text):
        number = number_of(place.key)
        if number in keys:
            found.setdefault(number, place)
            if len(found) == len(keys):
                break
    return found


def unnamed_shared_links(seeds: Sequence[SeedText], holders: Sequence[Holder]) -> list[Edge]:
    """Return the links to other documents with a phrase of a seed that two to eight documents share.

    `holders` are chunks in scope with the seeds' phrases, with or without the seeds' chunks. A phrase without one was
    not searched: it is too common, or shared names are not followed.
    """
    return [edge for edge, _ in _shared(seeds, holders)]


def _shared(seeds: Sequence[SeedText], holders: Sequence[Holder]) -> list[tuple[Edge, int]]:
    """Return these links, the surest of each pair of documents, and the key of the phrase of each."""
    # The first chunk of each document, by phrase.
    chunks: dict[int, dict[str, int]] = defaultdict(dict)
    for document, ordinal, key in holders:
        chunks[key].setdefault(document, ordinal)
    own = [str(seed.chunk.document_id) for seed in seeds]
    for document, seed in zip(own, seeds, strict=True):
        for key in chunks.keys() & seed.mentions.keys:
            chunks[key].setdefault(document, seed.chunk.ordinal)
    surest: dict[tuple[str, str], tuple[float, ChunkId, int, int]] = {}
    for source, seed in zip(own, seeds, strict=True):
        for key in seed.mentions.keys[: seed.mentions.phrases]:
            sharing = chunks.get(key, {})
            if not 1 < len(sharing) <= MAX_SHARING:
                continue
            weight = _SHARED / log2(len(sharing) + 1)
            for document, ordinal in sharing.items():
                pair = (source, document)
                if document != source and (pair not in surest or surest[pair][0] < weight):
                    surest[pair] = weight, seed.chunk, ordinal, key
    ids = {document: UUID(document) for _, document in surest}
    return [
        (Edge(source, ids[to], SHARED_NAME, "", weight, target_chunk=ChunkId(ids[to], ordinal)), key)
        for (_, to), (weight, source, ordinal, key) in surest.items()
    ]


class StatedKind(StrEnum):
    """The origin of a link."""

    HYPERLINK = "hyperlink"
    TRIPLE = "triple"


@dataclass(frozen=True, slots=True)
class Stated:
    """One end of an explicit link."""

    kind: StatedKind
    key: int  #: Stored key of the target's address or name.
    name: str
    sentence: str = ""  #: Its statement; empty for the text around it.


@dataclass(frozen=True, slots=True)
class Meeting:
    """An explicit link with a document that has its key."""

    source: ChunkId
    target: UUID
    stated: Stated
    quality: float  #: Certainty that the key means the document, 0 to 1.


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
