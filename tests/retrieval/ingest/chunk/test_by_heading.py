from itertools import pairwise

from retrieval.ingest.chunk import chunk
from retrieval.text.document import Block, BlockKind, ChunkLimits, Hyperlink, ParsedDocument


def paths(drafts):
    return [draft.heading_path for draft in drafts]


def test_tiny_sections_are_one_chunk_that_names_them(chunks):
    (draft,) = chunks(
        ("paragraph", "Intro."), (2, "First"), ("paragraph", "One."), (2, "Second"), ("paragraph", "Two.")
    )
    assert draft.heading_path == ("First · Second",)
    assert draft.text == "Intro.\n\nFirst\n\nOne.\n\nSecond\n\nTwo."
    assert draft.token_count == 5


def test_a_document_that_fits_a_chunk_is_split_at_its_headings(chunks, some_words):
    drafts = chunks((2, "First"), ("paragraph", some_words(12)), (2, "Second"), ("paragraph", some_words(12, 12)))
    assert paths(drafts) == [("First",), ("Second",)]
    assert [draft.text for draft in drafts] == [some_words(12), some_words(12, 12)]


def test_text_before_the_first_heading_has_no_path(chunks, some_words):
    drafts = chunks(("paragraph", some_words(12)), (2, "First"), ("paragraph", some_words(12, 12)))
    assert paths(drafts) == [(), ("First",)]


def test_text_below_a_heading_and_its_subsections_have_their_own_paths(chunks, some_words):
    drafts = chunks(
        (1, "Guide"), ("paragraph", some_words(12)), (2, "Setup"), ("paragraph", some_words(12)), (3, "Linux"),
        ("paragraph", some_words(12)),
    )  # fmt: skip
    assert paths(drafts) == [("Guide",), ("Guide", "Setup"), ("Guide", "Setup", "Linux")]


def test_large_sections_are_chunks_of_their_own(chunks, some_words):
    drafts = chunks((2, "First"), ("paragraph", some_words(30)), (2, "Second"), ("paragraph", some_words(30, 30)))
    assert paths(drafts) == [("First",), ("Second",)]
    assert [draft.text for draft in drafts] == [some_words(30), some_words(30, 30)]


def test_the_hierarchy_is_kept_as_the_path(chunks, some_words):
    drafts = chunks(
        (1, "Guide"),
        (2, "Setup"),
        (3, "Linux"),
        ("paragraph", some_words(35)),
        (3, "Windows"),
        ("paragraph", some_words(35)),
        (2, "Use"),
        ("paragraph", some_words(35)),
    )
    assert paths(drafts) == [("Guide", "Setup", "Linux"), ("Guide", "Setup", "Windows"), ("Guide", "Use")]


def test_two_small_siblings_are_merged(chunks, some_words):
    parts = [block for name in ("One", "Two", "Three") for block in ((3, name), ("paragraph", some_words(8)))]
    drafts = chunks((2, "Setup"), *parts, (2, "Use"), ("paragraph", some_words(30)))
    assert paths(drafts) == [("Setup", "One · Two"), ("Setup", "Three"), ("Use",)]
    assert drafts[0].text == f"One\n\n{some_words(8)}\n\nTwo\n\n{some_words(8)}"


def test_of_many_merged_sections_the_first_and_the_last_are_named(chunks):
    parts = [block for number in range(5) for block in ((2, f"Part{number}"), ("paragraph", "Text."))]
    (draft,) = chunks((1, "Guide"), *parts)
    assert draft.heading_path == ("Guide", "Part0 · … · Part4")
    assert draft.text.split() == [word for number in range(5) for word in (f"Part{number}", "Text.")]


def test_a_merged_section_that_continues_is_named_once(chunks, some_words):
    sentences = " ".join(f"{some_words(18, 20 * number)} end{number}. Next" for number in range(3))
    drafts = chunks((2, "One"), ("paragraph", "Short."), (2, "Two"), ("paragraph", sentences))
    assert paths(drafts)[0] == ("One · Two",)
    assert paths(drafts)[-1] == ("Two",)


def test_a_tiny_section_joins_its_neighbour(chunks, some_words):
    drafts = chunks((2, "One"), ("paragraph", some_words(38)), (2, "Next steps"), ("paragraph", "None."))
    assert paths(drafts) == [("One · Next steps",)]
    assert drafts[0].text.endswith("Next steps\n\nNone.")


def test_a_short_introduction_joins_the_large_table_below_it(chunks, some_words):
    table = "\n".join(["Name | Use", *(f"row {number} | x" for number in range(12))])
    drafts = chunks(
        (2, "Before"),
        ("paragraph", some_words(39)),
        (2, "Options"),
        ("paragraph", "The following table."),
        ("table", table),
    )
    assert paths(drafts) == [("Before",), ("Options",)]
    assert drafts[1].text == f"The following table.\n\n{table}"
    assert drafts[1].token_count == 54


def test_sections_of_different_parents_are_not_merged(chunks, some_words):
    drafts = chunks(
        (2, "A"),
        (3, "A1"),
        ("paragraph", some_words(35)),
        (3, "A2"),
        ("paragraph", "Small a."),
        (2, "B"),
        (3, "B1"),
        ("paragraph", "Small b."),
        (3, "B2"),
        ("paragraph", some_words(35)),
    )
    assert paths(drafts) == [("A", "A1 · A2"), ("B", "B1 · B2")]


def test_a_deeper_heading_stays_in_the_text_and_with_what_follows(chunks, some_words):
    drafts = chunks((2, "A"), ("paragraph", some_words(30)), (4, "Detail"), ("paragraph", some_words(30)))
    assert paths(drafts) == [("A",), ("A",)]
    assert not drafts[0].text.endswith("Detail")
    assert "Detail\n\nw0" in drafts[1].text


def test_a_lead_in_stays_with_its_list(chunks, some_words):
    drafts = chunks(("paragraph", some_words(30)), ("paragraph", "Do this:"), ("list", f"- {some_words(20)}"))
    assert drafts[0].text.endswith("w29")
    assert "Do this:\n\n- w0" in drafts[1].text


def test_a_large_section_is_split_at_sentences_with_overlap(chunks):
    sentences = [f"Sentence {number} has six words." for number in range(20)]
    drafts = chunks((2, "A"), ("paragraph", " ".join(sentences)))
    assert len(drafts) == 3
    assert paths(drafts) == [("A",)] * 3
    for before, after in pairwise(drafts):
        repeated = before.text[before.text.rindex("Sentence") :]
        assert after.text.startswith(repeated)
    assert max(draft.token_count for draft in drafts) - min(draft.token_count for draft in drafts) <= 10


def test_overlap_stays_inside_a_section(chunks, some_words):
    drafts = chunks((2, "A"), ("paragraph", some_words(35)), (2, "B"), ("paragraph", some_words(35, 100)))
    assert drafts[1].text == some_words(35, 100)


def test_code_is_kept_whole_up_to_the_most(chunks, some_words):
    code = "\n".join(some_words(5, row * 5) for row in range(11))
    drafts = chunks(("paragraph", some_words(20)), ("code", code), ("paragraph", some_words(20)))
    assert drafts[1].text == code
    assert drafts[1].token_count == 55


def test_larger_code_is_split_at_lines(chunks, some_words):
    code = "\n".join(f"    {some_words(5, row * 5)}" for row in range(30))
    drafts = chunks(("code", code))
    assert all(draft.text.startswith("    w") for draft in drafts)
    assert all(line in code.splitlines() for draft in drafts for line in draft.text.splitlines())


def test_a_large_table_is_split_at_rows_under_its_header(chunks):
    rows = [f"name{number} | value{number}" for number in range(40)]
    drafts = chunks(("table", "\n".join(["Name | Value", *rows]), "Name | Value"))
    assert len(drafts) > 2
    assert all(draft.text.startswith("Name | Value\n") for draft in drafts)
    assert [row for draft in drafts for row in draft.text.splitlines()[1:]] == rows
    assert all(draft.token_count == len(draft.text.split()) <= 40 for draft in drafts)


def test_a_large_table_without_header_is_split_at_rows(chunks):
    rows = [f"name{number} | value{number}" for number in range(40)]
    drafts = chunks(("table", "\n".join(rows)))
    assert [row for draft in drafts for row in draft.text.splitlines()] == rows


def test_a_heading_that_repeats_the_title_is_not_in_the_path(chunks, some_words):
    drafts = chunks(
        (1, "GUIDE"), (2, "A"), ("paragraph", some_words(35)), (2, "B"), ("paragraph", some_words(35)), title="Guide"
    )
    assert paths(drafts) == [("A",), ("B",)]


def test_a_heading_without_text_is_not_lost(chunks, some_words):
    drafts = chunks((2, "A"), ("paragraph", some_words(39)), (2, "To be written"))
    assert any("To be written" in draft.text for draft in drafts)
    (alone,) = chunks((1, "Only this"))
    assert alone.text == "Only this"


def test_a_paragraph_dressed_as_a_heading_is_text(chunks, some_words):
    drafts = chunks((2, some_words(100)), ("paragraph", "Text."), limits=ChunkLimits(target=200, limit=300, overlap=6))
    assert paths(drafts) == [()]


def test_levels_may_be_skipped(chunks, some_words):
    drafts = chunks((3, "Deep"), ("paragraph", some_words(35)), (1, "Top"), (3, "Under"), ("paragraph", some_words(35)))
    assert paths(drafts) == [("Deep",), ("Top", "Under")]


def test_a_chunk_has_the_links_whose_texts_stand_in_it(counter, some_words):
    links = (Hyperlink("w3 w4", "a.md"), Hyperlink("w90", "b.md"), Hyperlink("elsewhere", "c.md"))
    long = Block(BlockKind.PARAGRAPH, some_words(100), links=links)
    drafts = chunk(ParsedDocument("Title", (long,), "markdown"), counter, ChunkLimits(target=40, limit=60, overlap=6))
    assert [link.target for link in drafts[0].links] == ["a.md"]
    assert [link.target for link in drafts[-1].links] == ["b.md"]
