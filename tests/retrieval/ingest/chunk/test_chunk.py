"""What holds for every document, whatever the strategy."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from retrieval.ingest.chunk import chunk
from retrieval.text.document import Block, BlockKind, ChunkLimits, ParsedDocument


class Words:
    """Every match of a pattern is a token, by default every word; remembers what it was given."""

    def __init__(self, pattern=r"\S+"):
        self.pattern = re.compile(pattern)
        self.texts = []

    def token_spans(self, text):
        self.texts.append(text)
        return [found.span() for found in self.pattern.finditer(text)]


LINES = st.lists(st.sampled_from(["One two.", "three", "Four! Five", "six:", "seven eight nine. Ten"]), min_size=1)
TEXTS = st.builds(lambda lines, sign: sign.join(lines), LINES, st.sampled_from([" ", "\n", "\n  "]))
SOURCE_TYPES = st.sampled_from(["markdown", "html", "docx", "pdf", "text", "epub", "code", "json", "feed"])


@st.composite
def blocks(draw):
    kind = draw(st.sampled_from(BlockKind))
    text = draw(TEXTS)
    if kind is BlockKind.HEADING:
        return Block(kind, " ".join(text.split()), level=draw(st.integers(1, 6)))
    header = text.partition("\n")[0] if kind is BlockKind.TABLE and draw(st.booleans()) else ""
    return Block(kind, text, page=draw(st.none() | st.integers(1, 9)), header=header)


@st.composite
def documents(draw):
    return ParsedDocument("Title", tuple(draw(st.lists(blocks(), max_size=12))), draw(SOURCE_TYPES))


@st.composite
def limits(draw):
    target = draw(st.integers(4, 60))
    limit = draw(st.integers(target, 2 * target))
    return ChunkLimits(target=target, limit=limit, overlap=draw(st.integers(0, target // 2)))


@given(documents(), limits())
def test_no_chunk_is_empty_or_too_large(document, sizes):
    for draft in chunk(document, Words(), sizes):
        assert draft.text.strip()
        assert draft.text == draft.text.strip("\n").rstrip()
        assert 0 < draft.token_count <= sizes.limit
        assert draft.token_count == len(draft.text.split())


_LINES = ParsedDocument("Title", (Block(BlockKind.PARAGRAPH, "One two.\nthree\nOne two."),), "text")


@given(documents(), limits(), st.sampled_from([r"\S+", r"\n+|\w+|[^\w\s]", r"\s*\S"]))
@example(_LINES, ChunkLimits(target=7, limit=7, overlap=0), r"\n+|\w+|[^\w\s]")
def test_the_most_holds_for_other_tokenizers(document, sizes, pattern):
    assert all(0 < draft.token_count <= sizes.limit for draft in chunk(document, Words(pattern), sizes))


@given(st.lists(st.tuples(st.sampled_from(BlockKind), st.integers(1, 80)), max_size=8), limits(), SOURCE_TYPES)
def test_every_word_stands_in_a_chunk_in_order(shapes, sizes, source_type):
    made, number = [], 0
    for kind, count in shapes:
        words = [f"w{number + step}" for step in range(count)]
        number += count
        text = "\n".join(" ".join(words[row : row + 7]) for row in range(0, count, 7))
        header = text.partition("\n")[0] if kind is BlockKind.TABLE else ""
        made.append(Block(kind, text, level=1 + count % 6 if kind is BlockKind.HEADING else 0, header=header))
    drafts = chunk(ParsedDocument("Title", tuple(made), source_type), Words(), sizes)
    found = " ".join(" ".join((*draft.heading_path, draft.text)) for draft in drafts).split()
    assert set(found) == {f"w{step}" for step in range(number)}
    last_words = [int(draft.text.split()[-1][1:]) for draft in drafts]
    assert last_words == sorted(last_words)


SECTIONS = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 90)), min_size=1, max_size=12)
STRUCTURED = st.sampled_from(["markdown", "html", "docx", "pptx", "feed", "excel"])


@given(SECTIONS, limits(), STRUCTURED)
def test_every_chunk_under_a_heading_has_a_path_that_holds_for_all_of_its_text(shapes, sizes, source_type):
    made, above, path = [], {}, ()
    for number, (level, count) in enumerate(shapes):
        path = (*(heading for heading in path if heading[0] < level), (level, f"h{number}"))
        made.append(Block(BlockKind.HEADING, f"h{number}", level=level))
        words = [f"w{number}_{step}" for step in range(count)]
        made += [Block(BlockKind.PARAGRAPH, " ".join(words))] if words else []
        above |= dict.fromkeys(words, tuple(name for _, name in path))
    for draft in chunk(ParsedDocument("Title", tuple(made), source_type), Words(), sizes):
        words = draft.text.split()
        *parents, last = draft.heading_path or ("",)
        names = last.split(" · ")
        for headings in (above[word] for word in words if word in above):
            assert draft.heading_path
            assert headings[: len(parents)] == tuple(parents)
            assert {*parents, *names, *words} >= {*headings}


@given(documents(), limits())
def test_ordinals_count_from_zero_and_chunking_is_deterministic(document, sizes):
    drafts = chunk(document, Words(), sizes)
    assert [draft.ordinal for draft in drafts] == list(range(len(drafts)))
    assert drafts == chunk(document, Words(), sizes)


@given(documents(), limits())
def test_pages_are_those_of_the_blocks(document, sizes):
    pages = {block.page for block in document.blocks}
    for draft in chunk(document, Words(), sizes):
        assert {draft.page_start, draft.page_end} <= pages | {None}
        assert draft.page_start is None or draft.page_start <= draft.page_end


def test_each_block_is_tokenised_once():
    made = tuple(Block(BlockKind.PARAGRAPH, f"Paragraph {number}. " * 40) for number in range(30))
    counter = Words()
    assert len(chunk(ParsedDocument("Title", made, "markdown"), counter, ChunkLimits())) > 1
    assert counter.texts == ["\n\n", *(block.text for block in made)]


def test_a_document_without_blocks_has_no_chunks():
    assert chunk(ParsedDocument("Title", (), "markdown"), Words(), ChunkLimits()) == ()
    assert chunk(ParsedDocument("Title", (Block(BlockKind.PARAGRAPH, " "),), "text"), Words(), ChunkLimits()) == ()


HOSTILE = {
    "letters": "a" * 50_000,
    "digits": "7" * 50_000,
    "spaces": "a" + " " * 50_000 + "b",
    "blank lines": "a" + "\n" * 50_000 + "b",
    "base64": "QUJD/+9z" * 7_000,
    "long words": ("a" * 3_000 + " ") * 20,
    "wide columns": ("a" + " " * 500 + "b\n") * 100,
    "indentation": ("\n" + " " * 300 + "a") * 200,
    "punctuation": "." * 50_000,
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("kind", BlockKind)
def test_a_chunk_is_bounded_in_characters_whatever_its_tokens_are(kind, name):
    text, sizes = HOSTILE[name], ChunkLimits(target=40, limit=60, overlap=6)
    level = 1 if kind is BlockKind.HEADING else 0
    for source_type in ("markdown", "code", "json", "csv", "pdf", "text", "feed"):
        for header in ("", "a: " + text[:4_000]):
            block = Block(kind, text, level=level, header=header, row=1, path=("f",))
            drafts = chunk(ParsedDocument("Title", (block,), source_type), Words(), sizes)
            assert drafts
            assert all(0 < len(draft.text.strip()) <= len(draft.text) <= sizes.max_characters for draft in drafts)
            assert all(len(heading) <= sizes.max_characters for draft in drafts for heading in draft.heading_path)
            assert all(0 < draft.token_count <= sizes.limit for draft in drafts)


def test_the_bound_in_characters_is_far_above_that_of_words():
    sizes = ChunkLimits()
    text = "\n".join(" " * 24 + "incomprehensibilities = internationalisation" for _ in range(3_000))
    drafts = chunk(ParsedDocument("Title", (Block(BlockKind.CODE, text, row=1),), "code"), Words(), sizes)
    assert max(len(draft.text) for draft in drafts) < sizes.max_characters / 2
