"""The data of ingestion: a source item becomes a parsed document, then drafts of chunks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

#: Maximum characters of one token, including the white space after it; more of them count as more tokens. A tokenizer
#: makes one token of an unknown word of any length, and drops white space. English text has 5 characters per token,
#: deeply indented code 10; the longest words of vocabularies have 20.
MAX_TOKEN_CHARACTERS: Final = 64
_BLANK_LINE_CHARACTERS: Final = 2
_INDENTATION_CHARACTERS: Final = 512
HEADING_JOINT: Final = " · "  #: Between the headings of sections that are one chunk, in the last part of its path.
_UNITS: Final[Mapping[str, str]] = {"csv": "row", "excel": "row", "json": "record"}


class BlockKind(StrEnum):
    """The kind of a block of a parsed document; chunkers treat the kinds differently."""

    HEADING = "heading"
    PARAGRAPH = "paragraph"
    CODE = "code"
    TABLE = "table"
    LIST = "list"


class Hyperlink(NamedTuple):
    """A link that an author set."""

    text: str
    target: str  #: The target as written: an address, or a path relative to the document.


@dataclass(frozen=True, slots=True)
class Block:
    """One piece of a document, in reading order."""

    kind: BlockKind
    text: str
    level: int = 0  #: 1 to 6 for a heading, 0 for everything else.
    page: int | None = None  #: First page (1-based) of the block; None if the format has no pages.
    #: Text that is repeated above each part of a divided block. For a table: its header row, which is also the first
    #: line of `text`. For code and records, where `text` lacks it: the lines that open the class, the record's name.
    header: str = ""
    #: Row or line (1-based, as shown in programs) of the first line of `text` below `header`, one row per line; None if
    #: the format has no rows or lines worth citing.
    row: int | None = None
    #: Names of the structures that contain the block: class and method, the key above a record.
    path: tuple[str, ...] = ()
    links: tuple[Hyperlink, ...] = ()


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """A document as text in reading order, free of its file format."""

    title: str
    blocks: tuple[Block, ...]
    source_type: str  #: Canonical source type: markdown, html, pdf, docx, text ...
    #: Metadata in the file: author, created, language, front matter (strings only).
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RawDocument:
    """The bytes of one source item with its name and media type."""

    name: str  #: Path or name as shown to people; its suffix helps to select the parser.
    content: bytes
    media_type: str = ""  #: MIME type if the source has one.


class Parser(Protocol):
    """Turns the bytes of one format into a parsed document."""

    def __call__(self, raw: RawDocument, /) -> ParsedDocument:
        """Return the document; raise IngestError for bytes that it cannot read."""


@dataclass(frozen=True, slots=True)
class ChunkDraft:
    """A chunk before it is embedded and stored."""

    ordinal: int
    text: str
    heading_path: tuple[str, ...]
    token_count: int  #: Tokens of `text` by the embedding model's own tokenizer, without special tokens.
    page_start: int | None = None
    page_end: int | None = None
    #: First and last row (of the sheet that the heading path names) or line, 1-based and inclusive.
    row_start: int | None = None
    row_end: int | None = None
    section_start: int = 0  #: First and last ordinal of its parent section, inclusive.
    section_end: int = 0
    #: A paragraph by a language model on the chunk's context; embedded above the text, never part of it.
    context_line: str = ""
    #: Questions by a language model that the chunk answers; used only by full-text search.
    questions: tuple[str, ...] = ()
    links: tuple[Hyperlink, ...] = ()
    #: Relations found by a language model: subject, relation, object. None before a model was called for them.
    triples: tuple[tuple[str, str, str], ...] | None = None


class TokenCounter(Protocol):
    """The part of an encoder that chunkers need."""

    def token_spans(self, text: str) -> Sequence[tuple[int, int]]:
        """Return the character span of every token, in order, not truncated."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkLimits:
    """Sizes in tokens of the embedding model. `target <= limit` and `overlap < target`."""

    target: int = 512
    limit: int = 1024
    overlap: int = 50
    section: int = 2048

    @property
    def max_characters(self) -> int:
        """Maximum characters of a chunk, far more than any normal text needs."""
        return self.limit * (MAX_TOKEN_CHARACTERS + _BLANK_LINE_CHARACTERS) + _INDENTATION_CHARACTERS


CHUNK_PROFILES: Final[Mapping[str, ChunkLimits]] = {
    "default": ChunkLimits(),
    # Larger chunks with more overlap: for models with a long window and texts with long explanations.
    "chunk_first": ChunkLimits(target=768, limit=1536, overlap=128, section=3072),
}


def row_unit(source_type: str) -> str:
    """Return the unit for a source type: row, record or line."""
    return _UNITS.get(source_type, "line")


def headings_of(heading_path: Iterable[str]) -> Iterator[str]:
    """Yield the headings of a path, merged ones separately."""
    for heading in heading_path:
        yield from heading.split(HEADING_JOINT)


def in_context(title: str, heading_path: Sequence[str], text: str, context: str = "") -> str:
    """Return a text below its place in the document, "Title > Heading", and its context line, if any."""
    place = " > ".join((title, *heading_path))
    return "\n".join((place, context, text) if context else (place, text))
