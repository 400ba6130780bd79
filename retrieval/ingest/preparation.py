"""From the bytes of a source item to chunks with everything that is computed from their texts. Free of Django.

The input is untrusted, so the preparation runs in the limited process: see `retrieval.ingest.parsing`.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from corecube.sanitise import storable
from retrieval.encoders.tokenizer import counter_of
from retrieval.errors import IngestError
from retrieval.graph.addresses import Place
from retrieval.graph.document import ChunkGraph, ChunkWords, DocumentWords, graph_of
from retrieval.graph.names import Name
from retrieval.ingest.chunk import chunk
from retrieval.ingest.parse import parse
from retrieval.text.document import ChunkDraft, ChunkLimits, Hyperlink, ParsedDocument, RawDocument
from retrieval.text.fingerprints import simhash
from retrieval.text.quality import ChunkQuality, quality_of
from retrieval.text.traits import ChunkTraits, traits_of

_NO_PLACE: Final = Place(0, "", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """What decides, besides its bytes, how a source item is prepared."""

    limits: ChunkLimits = field(default_factory=ChunkLimits)
    tokenizer: str = ""  #: The path of the tokenizer's file; if empty, words and punctuation marks are counted.
    facts: Mapping[str, str] = field(default_factory=dict)
    source_type: str = ""  #: The canonical source type that its connection sets; empty for the parser's.
    place: Place = _NO_PLACE  #: The document's address, which its links are relative to.


@dataclass(frozen=True, slots=True)
class PreparedChunk:
    """A chunk and what is computed from its text."""

    draft: ChunkDraft
    content_hash: str
    simhash: int
    quality: ChunkQuality
    traits: ChunkTraits
    graph: ChunkGraph


@dataclass(frozen=True, slots=True)
class PreparedText:
    """A document before its chunks are embedded."""

    title: str
    source_type: str
    metadata: Mapping[str, str]
    names: tuple[Name, ...]
    chunks: tuple[PreparedChunk, ...]


def prepare_raw(raw: RawDocument, how: Preparation) -> PreparedText:
    """Parse and prepare a source item; raise IngestError as `parse` and `prepare_text` do."""
    return prepare_text(parse(raw), how)


def prepare_text(parsed: ParsedDocument, how: Preparation) -> PreparedText:
    """Prepare a parsed document; raise IngestError when no text is left."""
    drafts = tuple(map(_storable_draft, chunk(parsed, counter_of(how.tokenizer), how.limits)))
    if not drafts:
        raise IngestError("no_text", "There is no text in the file.")
    title = storable(how.facts.get("title") or parsed.title)
    # The file's own metadata replaces the source's; the title is separate.
    merged = {**{key: value for key, value in how.facts.items() if key != "title"}, **parsed.metadata}
    metadata = {storable(key): storable(value) for key, value in merged.items()}
    words = tuple(ChunkWords(it.ordinal, it.text, it.heading_path, it.links) for it in drafts)
    graph = graph_of(DocumentWords(title, how.source_type or parsed.source_type, metadata, words, how.place))
    chunks = tuple(
        PreparedChunk(
            draft,
            content_hash=content_hash(draft.text),
            simhash=simhash(draft.text),
            quality=quality_of(draft.text),
            traits=traits_of(draft, source_type=parsed.source_type),
            graph=chunk_graph,
        )
        for draft, chunk_graph in zip(drafts, graph.chunks, strict=True)
    )
    return PreparedText(title, parsed.source_type, metadata, graph.names, chunks)


def _storable_draft(draft: ChunkDraft) -> ChunkDraft:
    return replace(
        draft,
        text=storable(draft.text),
        heading_path=tuple(storable(heading) for heading in draft.heading_path),
        links=tuple(Hyperlink(storable(link.text), storable(link.target)) for link in draft.links),
    )


def content_hash(text: str) -> str:
    """Return the SHA-256 of a chunk's text, with white space normalised."""
    return hashlib.sha256(" ".join(text.split()).encode()).hexdigest()
