"""Documents made by hand and a tokenizer whose tokens are words."""

import re

import pytest

from retrieval.ingest.chunk import chunk
from retrieval.text.document import Block, BlockKind, ChunkLimits, ParsedDocument


class WordCounter:
    """Every word is a token; counts how many characters it has been given."""

    def __init__(self):
        self.characters = 0

    def token_spans(self, text):
        self.characters += len(text)
        return [found.span() for found in re.finditer(r"\S+", text)]


def words(count, start=0):
    return " ".join(f"w{number}" for number in range(start, start + count))


def make_block(kind, text, header="", *, page=None):
    """Return a block; a number as kind makes a heading of that level."""
    if isinstance(kind, int):
        return Block(BlockKind.HEADING, text, level=kind)
    return Block(BlockKind(kind), text, page=page, header=header)


def make_document(*blocks, source_type="markdown", title="Title"):
    return ParsedDocument(title, tuple(make_block(*block) for block in blocks), source_type)


@pytest.fixture
def counter():
    return WordCounter()


@pytest.fixture
def some_words():
    return words


@pytest.fixture
def block():
    return make_block


@pytest.fixture
def chunks(counter):
    """Return a function that chunks (kind, text) blocks; the target is 40 words, at most 60, with 6 repeated."""

    def of(*blocks, source_type="markdown", title="Title", limits=None):
        document = make_document(*blocks, source_type=source_type, title=title)
        return chunk(document, counter, limits or ChunkLimits(target=40, limit=60, overlap=6))

    return of
