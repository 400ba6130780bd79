"""What flows through ingestion: a source item becomes a parsed document, then drafts of chunks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol


class BlockKind(StrEnum):
    """What a block of a parsed document is; chunkers treat the kinds differently."""

    HEADING = "heading"
    PARAGRAPH = "paragraph"
    CODE = "code"
    TABLE = "table"
    LIST = "list"


class Hyperlink(NamedTuple):
    """A link that an author set."""

    #: What a reader sees of it.
    text: str
    #: Where it leads, as it is written: an address, or a path from where the document stands.
    target: str


@dataclass(frozen=True, slots=True)
class Block:
    """One piece of a document, in reading order."""

    kind: BlockKind
    text: str
    #: 1 to 6 for a heading, 0 for everything else.
    level: int = 0
    #: First page (1-based) that the block stands on; None where the format has no pages.
    page: int | None = None
    #: What is repeated above a part of the block. For a table: its header row, which is also the first line of
    #: `text`. For code and records, where it is not in `text`: the lines that open the class, the record's name.
    header: str = ""
    #: Row or line (1-based, as people see it in their program) of the first line of `text` below `header`, one
    #: row a line; None where the format has no rows or lines worth citing.
    row: int | None = None
    #: Names that the format itself puts the block under: class and method, the key above a record.
    path: tuple[str, ...] = ()
    links: tuple[Hyperlink, ...] = ()


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """A document as text in reading order, free of its file format."""

    title: str
    blocks: tuple[Block, ...]
    #: Canonical source type: markdown, html, pdf, docx, text ...
    source_type: str
    #: Facts found in the file: author, created, language, front matter (strings only).
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RawDocument:
    """The bytes of one source item and what its name and source say about them."""

    #: Path or name as people know it; its suffix helps to choose the parser.
    name: str
    content: bytes
    #: MIME type when the source tells one.
    media_type: str = ""


class Parser(Protocol):
    """Turns the bytes of one format into a parsed document."""

    def __call__(self, raw: RawDocument, /) -> ParsedDocument:
        """Return the document; raise IngestError for bytes that it cannot read."""
        ...


@dataclass(frozen=True, slots=True)
class ChunkDraft:
    """A chunk before it has an embedding or a place in the store."""

    ordinal: int
    text: str
    heading_path: tuple[str, ...]
    #: Tokens of `text` by the embedding model's own tokenizer, without special tokens.
    token_count: int
    page_start: int | None = None
    page_end: int | None = None
    #: First and last row (of the sheet that the heading path names) or line, 1-based and inclusive.
    row_start: int | None = None
    row_end: int | None = None
    #: First and last ordinal of its parent section, inclusive: what it can be read with.
    section_start: int = 0
    section_end: int = 0
    #: A paragraph that a language model wrote of where the chunk stands; embedded above the text, never part of it.
    context_line: str = ""
    #: Questions that the chunk answers, as a language model put them; read by full-text search alone.
    questions: tuple[str, ...] = ()
    links: tuple[Hyperlink, ...] = ()
    #: Who relates to whom, as a language model read it: subject, relation, object. None where none was asked.
    triples: tuple[tuple[str, str, str], ...] | None = None


class TokenCounter(Protocol):
    """The part of an encoder that chunkers need."""

    def token_spans(self, text: str) -> Sequence[tuple[int, int]]:
        """Return the character span of every token, in order, not truncated."""
        ...


#: Characters that one token stands for, with the white space behind it; more of them count as more tokens. A tokenizer
#: takes a word that it does not know for one token however long it is, and drops white space. English text has 5
#: characters a token, deeply indented code 10; the longest words of vocabularies have 20.
MAX_TOKEN_CHARACTERS: Final = 64
_BLANK_LINE_CHARACTERS: Final = 2
_INDENTATION_CHARACTERS: Final = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkLimits:
    """Sizes in tokens of the embedding model. `target <= most` and `overlap < target`."""

    target: int = 512
    limit: int = 1024
    overlap: int = 50
    #: The most that a parent section has.
    section: int = 2048

    @property
    def max_characters(self) -> int:
        """The characters that a chunk has at most, which no text of words comes near."""
        return self.limit * (MAX_TOKEN_CHARACTERS + _BLANK_LINE_CHARACTERS) + _INDENTATION_CHARACTERS


#: The sizes that a connection can choose from.
CHUNK_PROFILES: Final[Mapping[str, ChunkLimits]] = MappingProxyType(
    {
        "default": ChunkLimits(),
        # Larger chunks with more overlap: for models with a long window and texts that explain one thing at length.
        "chunk_first": ChunkLimits(target=768, limit=1536, overlap=128, section=3072),
    }
)
