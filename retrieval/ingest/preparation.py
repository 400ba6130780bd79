"""From a source item's bytes to chunks with everything that is worked out from their texts. Free of Django.

All of it reads what strangers wrote, so it runs in the limited process: see `retrieval.ingest.parsing`.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from corecube.sanitise import storable
from retrieval.encoders.tokenizer import counter_of
from retrieval.errors import IngestError
from retrieval.graph.addresses import Place
from retrieval.graph.document import ChunkGraph, ChunkWords, DocumentWords, graph_of
from retrieval.graph.names import Name
from retrieval.ingest.chunk import chunk
from retrieval.ingest.parse import parse
from retrieval.text.document import ChunkDraft, ChunkLimits, Hyperlink, ParsedDocument, RawDocument
from retrieval.text.quality import ChunkQuality, quality_of
from retrieval.text.simhash import simhash
from retrieval.text.traits import ChunkTraits, traits_of

_NOWHERE = Place(0, "", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """What decides, beside its bytes, what becomes of a source item."""

    limits: ChunkLimits = field(default_factory=ChunkLimits)
    #: The path of the tokenizer's file; empty counts words and signs.
    tokenizer: str = ""
    #: What the source says of the item. A title among it stands above the file's own.
    facts: Mapping[str, str] = field(default_factory=dict)
    #: The canonical source type that its connection gives it; empty for the parser's.
    source_type: str = ""
    #: Where the document stands: what its links start from.
    place: Place = _NOWHERE


@dataclass(frozen=True, slots=True)
class PreparedChunk:
    """A chunk and what is worked out from its text."""

    draft: ChunkDraft
    content_hash: str
    simhash: int
    quality: ChunkQuality
    traits: ChunkTraits
    graph: ChunkGraph


@dataclass(frozen=True, slots=True)
class PreparedText:
    """What a document's bytes become before they are embedded."""

    title: str
    source_type: str
    metadata: Mapping[str, str]
    names: tuple[Name, ...]
    chunks: tuple[PreparedChunk, ...]


def prepare_raw(raw: RawDocument, how: Preparation) -> PreparedText:
    """Return what becomes of a source item; raise IngestError as `parse` and `prepare_text` do."""
    return prepare_text(parse(raw), how)


def prepare_text(parsed: ParsedDocument, how: Preparation) -> PreparedText:
    """Return what becomes of a parsed document; raise IngestError when no text is left."""
    drafts = tuple(map(_storable_draft, chunk(parsed, counter_of(how.tokenizer), how.limits)))
    if not drafts:
        raise IngestError("no_text", "There is no text in the file.")
    title = storable(how.facts.get("title") or parsed.title)
    metadata = _metadata(how.facts, parsed)
    graph = graph_of(
        DocumentWords(title, how.source_type or parsed.source_type, metadata, tuple(map(_words, drafts)), how.place)
    )
    chunks = tuple(_chunk(draft, parsed.source_type, it) for draft, it in zip(drafts, graph.chunks, strict=True))
    return PreparedText(title, parsed.source_type, metadata, graph.names, chunks)


def content_hash(text: str) -> str:
    """Return the SHA-256 of a chunk's text, with white space normalised."""
    return hashlib.sha256(" ".join(text.split()).encode()).hexdigest()


def _chunk(draft: ChunkDraft, source_type: str, graph: ChunkGraph) -> PreparedChunk:
    return PreparedChunk(
        draft,
        content_hash=content_hash(draft.text),
        simhash=simhash(draft.text),
        quality=quality_of(draft.text),
        traits=traits_of(draft, source_type=source_type),
        graph=graph,
    )


def _words(draft: ChunkDraft) -> ChunkWords:
    return ChunkWords(draft.ordinal, draft.text, draft.heading_path, draft.links)


def _metadata(facts: Mapping[str, str], parsed: ParsedDocument) -> dict[str, str]:
    """Return the facts that the source tells and those in the file, which count more; the title is none."""
    merged = {**{key: value for key, value in facts.items() if key != "title"}, **parsed.metadata}
    return {storable(key): storable(value) for key, value in merged.items()}


def _storable_draft(draft: ChunkDraft) -> ChunkDraft:
    return replace(
        draft,
        text=storable(draft.text),
        heading_path=tuple(storable(heading) for heading in draft.heading_path),
        links=tuple(Hyperlink(storable(link.text), storable(link.target)) for link in draft.links),
    )
