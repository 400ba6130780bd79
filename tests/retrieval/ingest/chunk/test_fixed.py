from itertools import pairwise

from retrieval.ingest.chunk import chunk
from retrieval.text.document import ChunkLimits, ParsedDocument

LIMITS = ChunkLimits(target=40, limit=60, overlap=6)


def text(block, *paragraphs):
    return ParsedDocument("T", tuple(block("paragraph", paragraph) for paragraph in paragraphs), "text")


def test_text_without_sentences_is_cut_near_the_target_with_overlap(block, counter, some_words):
    drafts = chunk(text(block, some_words(100)), counter, LIMITS)
    assert [draft.text for draft in drafts] == [some_words(40), some_words(36, 34), some_words(36, 64)]
    assert all(len(set(one.text.split()) & set(other.text.split())) == 6 for one, other in pairwise(drafts))


def test_a_cut_near_the_target_falls_at_a_sentence(block, counter):
    sentences = [f"Sentence {number} has five words." for number in range(20)]
    drafts = chunk(text(block, " ".join(sentences)), counter, LIMITS)
    assert all(draft.text.endswith(".") and draft.text.startswith("Sentence") for draft in drafts)


def test_long_lines_are_not_torn(block, counter, some_words):
    lines = [some_words(9, number * 9) for number in range(20)]
    drafts = chunk(text(block, "\n".join(lines)), counter, ChunkLimits(target=40, limit=60, overlap=0))
    assert [line for draft in drafts for line in draft.text.splitlines()] == lines


def test_lines_and_paragraphs_stay_as_they_are(block, counter):
    (draft,) = chunk(text(block, "one\n  two", "three"), counter, LIMITS)
    assert draft.text == "one\n  two\n\nthree"
    assert draft.heading_path == ()


def test_a_small_rest_joins_the_last_chunk(block, counter, some_words):
    (draft,) = chunk(text(block, some_words(42)), counter, LIMITS)
    assert draft.text == some_words(42)
