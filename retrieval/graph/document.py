"""The part of one document in the graph. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from retrieval.graph.addresses import Place
from retrieval.graph.links import Stated, stated_by_links
from retrieval.graph.mentions import Mentions, mentions_of
from retrieval.graph.names import Name, names_of
from retrieval.text.document import headings_of

_ALIAS_KEYS: Final = ("aliases", "alias", "also_known_as", "redirect_from")
_LEAD_CHARACTERS: Final = 200  #: Characters at the beginning of a text that may contain its name.


@dataclass(frozen=True, slots=True)
class ChunkWords:
    """A chunk as input of the graph."""

    ordinal: int
    text: str
    heading_path: tuple[str, ...]
    links: Sequence[Sequence[str]] = ()  #: [text, target] of each hyperlink.
    #: [subject, relation, object] of the triples that a language model extracted.
    triples: Sequence[Sequence[str]] = ()


@dataclass(frozen=True, slots=True)
class DocumentWords:
    """A document as input of the graph."""

    title: str
    source_type: str
    metadata: Mapping[str, Any]
    chunks: tuple[ChunkWords, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class ChunkGraph:
    """The mentions and hyperlinks of one chunk."""

    mentions: Mentions
    stated: tuple[Stated, ...] = ()


@dataclass(frozen=True, slots=True)
class DocumentGraph:
    """The names of a document, and the graph of each chunk in order."""

    names: tuple[Name, ...]
    chunks: tuple[ChunkGraph, ...]


@dataclass(frozen=True, slots=True)
class GraphDocument:
    """A document's part of the graph, ready to be stored."""

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
    headings = list(dict.fromkeys(heading for chunk in words.chunks for heading in headings_of(chunk.heading_path)))
    values = [str(words.metadata[key]) for key in _ALIAS_KEYS if key in words.metadata]
    names = names_of(
        words.title,
        lead=words.chunks[0].text[:_LEAD_CHARACTERS] if words.chunks else "",
        aliases=[alias.strip(" \t\"'[]") for value in values for alias in value.split(",") if alias.strip()],
        headings=() if words.source_type == "code" else headings,
        identifiers=headings,
    )
    return DocumentGraph(names, chunks)
