from retrieval.ingest.chunk import chunk
from retrieval.text.document import ChunkLimits, ParsedDocument

LIMITS = ChunkLimits(target=40, limit=60, overlap=6)


def pdf(block, *pages):
    """Return a PDF of one paragraph for each (page, text)."""
    return ParsedDocument("T", tuple(block("paragraph", text, page=page) for page, text in pages), "pdf")


def test_paragraphs_are_packed_with_their_pages(block, counter, some_words):
    pages = (1, some_words(18)), (1, some_words(18, 100)), (2, some_words(18, 200)), (4, some_words(12, 300))
    drafts = chunk(pdf(block, *pages), counter, LIMITS)
    assert [(draft.page_start, draft.page_end) for draft in drafts] == [(1, 1), (1, 4)]
    assert drafts[0].text == f"{some_words(18)}\n\n{some_words(18, 100)}"
    assert drafts[1].text == f"{some_words(6, 112)}\n\n{some_words(18, 200)}\n\n{some_words(12, 300)}"


def test_nothing_is_repeated_before_a_paragraph_that_fills_the_chunk(block, counter, some_words):
    drafts = chunk(pdf(block, (1, some_words(38)), (2, some_words(38, 100))), counter, LIMITS)
    assert [(draft.text, draft.page_start) for draft in drafts] == [(some_words(38), 1), (some_words(38, 100), 2)]


def test_a_long_paragraph_is_cut_into_equal_parts(block, counter):
    text = " ".join(f"Sentence {number} has five words." for number in range(20))
    drafts = chunk(pdf(block, (7, text)), counter, LIMITS)
    assert [draft.token_count for draft in drafts] == [35, 40, 35]
    assert {(draft.page_start, draft.page_end) for draft in drafts} == {(7, 7)}


def test_a_type_without_a_strategy_is_chunked_by_paragraphs(block, counter):
    document = ParsedDocument("T", (block("paragraph", "Text."),), "epub")
    (draft,) = chunk(document, counter, LIMITS)
    assert (draft.text, draft.page_start, draft.page_end) == ("Text.", None, None)
