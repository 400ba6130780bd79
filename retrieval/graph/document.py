"""What one document adds to the graph of names, read from its texts. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from retrieval.graph.addresses import Place
from retrieval.graph.mentions import Mentions, mentions_of
from retrieval.graph.names import Name, names_of
from retrieval.graph.stated import Stated, stated_by_links

#: Where a file or its author says by what else it is known.
_ALIAS_KEYS: Final = ("aliases", "alias", "also_known_as", "redirect_from")
#: Characters of a text that can hold the name that it begins with.
_LEAD_CHARACTERS: Final = 200
_CODE: Final = "code"


@dataclass(frozen=True, slots=True)
class ChunkWords:
    """What of a chunk goes into the graph."""

    ordinal: int
    text: str
    heading_path: tuple[str, ...]
    #: [text, target] of each link that its author set.
    links: Sequence[Sequence[str]] = ()
    #: [subject, relation, object] of what a language model read in it.
    triples: Sequence[Sequence[str]] = ()


@dataclass(frozen=True, slots=True)
class DocumentWords:
    """What of a document goes into the graph."""

    title: str
    source_type: str
    metadata: Mapping[str, Any]
    chunks: tuple[ChunkWords, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class ChunkGraph:
    """What one chunk mentions, and where the links lead that its author set."""

    mentions: Mentions
    stated: tuple[Stated, ...] = ()


@dataclass(frozen=True, slots=True)
class DocumentGraph:
    """The names by which texts speak of a document, and what each of its chunks states, in order."""

    names: tuple[Name, ...]
    chunks: tuple[ChunkGraph, ...]


@dataclass(frozen=True, slots=True)
class GraphDocument:
    """A document's part of the graph with what it belongs to, ready to be written."""

    id: UUID
    place: Place
    graph: DocumentGraph
    #: Each chunk's ordinal and its triples, in the order of the graph's chunks.
    chunks: tuple[tuple[int, Sequence[Sequence[str]]], ...]


def graph_of(words: DocumentWords) -> DocumentGraph:
    """Return a document's part of the graph."""
    chunks = tuple(
        ChunkGraph(mentions_of(chunk.text), stated_by_links(chunk.links, words.place)) for chunk in words.chunks
    )
    headings = list(dict.fromkeys(heading for chunk in words.chunks for heading in chunk.heading_path))
    values = [str(words.metadata[key]) for key in _ALIAS_KEYS if key in words.metadata]
    names = names_of(
        words.title,
        lead=words.chunks[0].text[:_LEAD_CHARACTERS] if words.chunks else "",
        aliases=[alias.strip(" \t\"'[]") for value in values for alias in value.split(",") if alias.strip()],
        headings=() if words.source_type == _CODE else headings,
        identifiers=headings,
    )
    return DocumentGraph(names, chunks)
