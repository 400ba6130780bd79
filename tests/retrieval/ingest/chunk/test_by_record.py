"""Record-based chunks. Tokens are words; the target is 40 of them, the most 60."""

from retrieval.ingest.chunk import chunk
from retrieval.text.document import Block, BlockKind, ChunkLimits, ParsedDocument

LIMITS = ChunkLimits(target=40, limit=60, overlap=6)


def record(text, row=None, path=(), header=""):
    return Block(BlockKind.PARAGRAPH, text, header=header, row=row, path=path)


def chunks(counter, *blocks):
    return chunk(ParsedDocument("Title", blocks, "json"), counter, LIMITS)


def test_each_record_is_a_chunk_with_its_number(counter):
    drafts = chunks(counter, record("id: 1\nname: Oslo", 1, ("Oslo",)), record("id: 2", 2))
    assert [(it.ordinal, it.text, it.heading_path, it.row_start, it.row_end, it.token_count) for it in drafts] == [
        (0, "id: 1\nname: Oslo", ("Oslo",), 1, 1, 4),
        (1, "id: 2", (), 2, 2, 2),
    ]


def test_small_records_without_a_number_are_put_together(counter, some_words):
    drafts = chunks(
        counter,
        record("name: x"),
        record("scripts.test: jest", path=("scripts",)),
        record(some_words(50), path=("files",)),
        record("id: 1", 1),
    )
    assert [draft.heading_path for draft in drafts] == [("scripts",), ("files",), ()]
    assert drafts[0].text == "name: x\n\nscripts.test: jest"
    assert (drafts[0].row_start, drafts[2].row_start) == (None, 1)


def test_a_large_record_is_cut_and_says_in_each_part_which_it_is(counter, some_words):
    lines = "\n".join(f"key{number}: {some_words(4, 4 * number)}" for number in range(24))
    drafts = chunks(counter, record(f"id: 7\n{lines}", 3, ("7",), "id: 7"))
    assert len(drafts) > 3
    assert all(draft.text.startswith("id: 7\nkey") for draft in drafts)
    assert {(draft.heading_path, draft.row_start, draft.row_end) for draft in drafts} == {(("7",), 3, 3)}
    assert all(draft.token_count == len(draft.text.split()) <= 45 for draft in drafts)
    found = [line for draft in drafts for line in draft.text.split("\n")[1:]]
    assert found == lines.split("\n")


def test_a_record_is_kept_whole_up_to_the_most(counter, some_words):
    (draft,) = chunks(counter, record(some_words(60), 1))
    assert draft.token_count == 60


def test_a_monstrous_name_is_not_repeated(counter, some_words):
    drafts = chunks(counter, record(some_words(100), 1, header=some_words(30)))
    assert " ".join(draft.text for draft in drafts) == some_words(100)
