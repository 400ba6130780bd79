import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.errors import IngestError
from retrieval.ingest.parse.finish import finished, tidy, title_from_name
from retrieval.text.document import Block, BlockKind, RawDocument


def heading(text, level=1):
    return Block(BlockKind.HEADING, text, level=level)


def paragraph(text="Some text."):
    return Block(BlockKind.PARAGRAPH, text)


def finish(*blocks, name="notes/on-call_rules.md", **facts):
    return finished(RawDocument(name, b""), source_type="markdown", blocks=blocks, **facts)


def test_the_explicit_title_comes_first():
    document = finish(heading("Heading"), paragraph(), explicit_title="Front", property_title="Property")
    assert document.title == "Front"
    assert document.blocks[0].text == "Heading"


def test_the_first_top_heading_comes_second_and_is_not_repeated():
    document = finish(paragraph("Intro."), heading("Sub", 2), heading("Main"), paragraph(), property_title="Property")
    assert document.title == "Main"
    only = finish(heading("Main"), paragraph(), property_title="Property")
    assert (only.title, [block.text for block in only.blocks]) == ("Main", ["Some text."])


def test_the_property_comes_third():
    document = finish(heading("Sub", 2), paragraph(), property_title="Property")
    assert document.title == "Property"


@pytest.mark.parametrize("made_up", ["untitled", "(anonymous)", "Document", "0001437749-23-003123", "  "])
def test_a_property_that_a_program_made_up_is_no_title(made_up):
    assert finish(paragraph(), property_title=made_up).title == "On call rules"


def test_a_programs_prefix_is_cut_off():
    assert finish(paragraph(), property_title="Microsoft Word - Annual report").title == "Annual report"


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("a/b/benefits-and-perks.md", "Benefits and perks"),
        ("COCACOLA_2017_10K.pdf", "COCACOLA 2017 10K"),
        ("guides/setup/index.html", "Setup"),
        ("README.md", "README"),
        ("C:\\docs\\plan.txt", "Plan"),
        ("", "Untitled"),
    ],
)
def test_the_name_comes_last(name, title):
    assert title_from_name(name) == title


def test_a_heading_that_repeats_the_title_in_other_case_is_dropped():
    document = finish(heading("ON-CALL  Rules", 2), paragraph(), explicit_title="On-call rules")
    assert [block.text for block in document.blocks] == ["Some text."]


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("I have lost my badge.", "I have lost my badge"),
        ("Acme Inc.", "Acme Inc."),
        ("Offices in the U.S.", "Offices in the U.S."),
        ("My child is ill. What now?", "My child is ill. What now?"),
        ("The tenant shall pay the whole rent before each month begins.",) * 2,
    ],
)
def test_a_heading_that_is_a_short_sentence_loses_its_full_stop_above_text(written, text):
    assert finish(heading(written, 2), paragraph()).blocks[0].text == text
    assert finish(heading(written, 2), heading("Next", 2), paragraph()).blocks[0].text == written


def test_a_document_of_one_heading_keeps_it():
    assert [block.text for block in finish(heading("Main")).blocks] == ["Main"]


def test_a_document_without_text_is_refused():
    with pytest.raises(IngestError) as caught:
        finish(paragraph("\u200b\n \x00"))
    assert caught.value.reason == "empty"


def test_facts_are_strings_of_one_line_and_bounded():
    facts = {f"key{number}": "a\nb" for number in range(100)} | {"none": ""}
    metadata = finish(paragraph(), metadata=facts).metadata
    assert len(metadata) == 32
    assert set(metadata.values()) == {"a b"}
    assert len(finish(paragraph(), metadata={"key": "x" * 9999}).metadata["key"]) == 500


@pytest.mark.parametrize(
    "line", ["Status: superseded", "- Status | superseded", "Document status: superseded", "Statut : superseded"]
)
def test_the_status_is_what_the_document_states_at_its_start(line):
    assert finish(heading("Rules"), paragraph(f"Version: 3\n{line}\nOwner: Ann")).metadata == {"status": "superseded"}
    assert finish(paragraph(line), metadata={"status": "valid"}).metadata == {"status": "valid"}
    assert finish(*[paragraph()] * 9, paragraph(line)).metadata == {}


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("SUPERSEDED on 19 June 2024 by v2.1. For the record.", "SUPERSEDED on 19 June 2024 by v2.1"),
        ("> **DEPRECATED since 4 March. Do not follow.**", "DEPRECATED since 4 March"),
        ("> **SUPERSEDED by POL-15**", "SUPERSEDED by POL-15"),
        ("SUPERSEDED.", "SUPERSEDED"),
        ("SUPERSEDED BY POL-15", "SUPERSEDED BY POL-15"),
        ("DRAFT for the board", "DRAFT for the board"),
        ("# VERALTET, ersetzt durch Fassung 3", "VERALTET, ersetzt durch Fassung 3"),
        ("This page has been replaced by Rates 2025. It stays for audits.", "replaced by Rates 2025"),
        ("Note: This old list is no longer valid", "no longer valid"),
        ("Dieses Dokument ist nicht mehr gültig.", "nicht mehr gültig"),
    ],
)
def test_a_warning_at_the_start_is_its_status(line, status):
    assert finish(heading("Rules"), paragraph(line)).metadata == {"status": status}


@pytest.mark.parametrize(
    ("title", "metadata"),
    [
        ("Rates (SUPERSEDED)", {"status": "SUPERSEDED"}),
        ("[DEPRECATED] Old API", {"status": "DEPRECATED"}),
        ("DRAFT: Rules", {"status": "DRAFT"}),
        ("Rates 2024", {}),
        ("ARCHIVED DOCUMENTS", {}),
        ("Pages that say DRAFT", {}),
        ("How to remove DEPRECATED calls", {}),
        ("DRAFT Beer", {}),
    ],
)
def test_a_warning_in_the_title_is_its_status(title, metadata):
    assert finish(paragraph(), explicit_title=title).metadata == metadata


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("fees-2023-superseded.docx", "superseded"),
        ("rates 2024 (DRAFT).csv", "DRAFT"),
        ("runbooks/deprecated/failover.md", "deprecated"),
        ("deprecated-calls.md", ""),
        ("archived/mail.md", ""),
    ],
)
def test_a_name_that_says_so_is_its_status(name, status):
    document = finished(RawDocument(name, b""), source_type="text", blocks=[paragraph()])
    assert document.metadata.get("status", "") == status


@pytest.mark.parametrize(
    "line",
    [
        "The status: superseded",
        "Status | Owner | Date",
        "Status codes: 4",
        "OBSOLETE EQUIPMENT",
        "DRAFT Beer",
        "DRAFTed by Ann.",
        "WITHDRAWN books are sold each May.",
        "ARCHIVED-mail search",
        "Superseded rules are kept for ten years.",
        "This edition replaces the edition of 2022.",
        "This plastic key is replaced by the front desk at no cost.",
        "This popular machine was withdrawn in 1998.",
        "Deprecated: API version 2023-03",
    ],
)
def test_other_lines_state_no_status(line):
    assert finish(paragraph(line)).metadata == {}


@pytest.mark.parametrize("kind", [BlockKind.TABLE, BlockKind.LIST, BlockKind.CODE])
def test_only_prose_warns(kind):
    assert finish(Block(kind, "- DEPRECATED: the old sign-in\nARCHIVED | 4")).metadata == {}


def test_a_title_is_bounded():
    assert len(finish(paragraph(), explicit_title="long " * 500).title) == 300


def test_tidy_evens_out_what_files_do_differently():
    assert tidy("a\r\nb\rc\u2028d") == "a\nb\nc\nd"
    assert tidy("e\u0301 \ufb01 so\u00adft\u200b a\u00a0b") == "é ﬁ soft a b"
    assert tidy("a\n\n \n\n\nb") == "a\n\nb"
    assert tidy("\n  def f():\n") == "  def f():"


@given(st.text())
def test_tidy_text_can_be_stored_and_is_tidy(text):
    once = tidy(text)
    assert "\0" not in once
    once.encode()
    assert tidy(once) == once
