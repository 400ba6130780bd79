import pytest

from retrieval.errors import IngestError
from retrieval.ingest.parse.pdf import parse_pdf

PROSE = (
    "The release captain drains the queue before any rollback and",
    "writes down the time. Draining takes four minutes when every",
    "worker is healthy.",
)


def test_wrapped_lines_become_paragraphs_with_their_page(raw, pdf, lines, shape):
    content = pdf(lines(*PROSE, "", "A second paragraph."), lines("On the next page."))
    document = parse_pdf(raw(content, name="run-book.pdf"))
    assert shape(document) == [
        ("paragraph", " ".join(PROSE)),
        ("paragraph", "A second paragraph."),
        ("paragraph", "On the next page."),
    ]
    assert [block.page for block in document.blocks] == [1, 1, 2]
    assert document.source_type == "pdf"
    assert document.metadata["pages"] == "2"


def test_a_sentence_goes_on_over_the_page(raw, pdf, lines, shape):
    document = parse_pdf(raw(pdf(lines("The captain drains the"), lines("queue first.")), name="a.pdf"))
    assert shape(document) == [("paragraph", "The captain drains the queue first.")]


def test_rows_of_a_table_stay_lines(raw, pdf, lines, shape):
    content = pdf(lines("Cash and equivalents 6,006 8,555", "Inventories 2,655 2,675", "Total 8,661 11,230"))
    assert shape(parse_pdf(raw(content, name="a.pdf"))) == [
        ("paragraph", "Cash and equivalents 6,006 8,555\nInventories 2,655 2,675\nTotal 8,661 11,230")
    ]


def test_broken_words_are_mended(raw, pdf, lines):
    content = pdf(
        lines(
            "Our information about the deploy-",
            "ment of long-term plans is old. The informa-",
            "tion about deployment is new. A plan for the term is long-",
            "term too.",
        )
    )
    (block,) = parse_pdf(raw(content, name="a.pdf")).blocks
    assert block.text == (
        "Our information about the deployment of long-term plans is old. "
        "The information about deployment is new. A plan for the term is long-term too."
    )


def test_running_lines_and_page_numbers_are_removed(raw, pdf, lines, shape):
    pages = [
        [
            *lines("Acme Annual Report, Confidential", top=760),
            *lines(f"This is what page {name} says.", "It says no more."),
            *lines(f"Page {number} of 4", top=40),
        ]
        for number, name in enumerate(("one", "two", "three", "four"), start=1)
    ]
    document = parse_pdf(raw(pdf(*pages), name="a.pdf"))
    assert [text for _, text in shape(document)] == [
        f"This is what page {name} says. It says no more." for name in ("one", "two", "three", "four")
    ]


def test_the_title_of_a_chapter_is_kept_where_it_first_stands(raw, pdf, lines, shape):
    chapters = ["Alpha"] * 4 + ["Beta"] * 4 + ["Gamma"] * 4
    pages = [
        [*lines(f"Chapter {chapter}", top=760), *lines(f"What page {name} says.")]
        for chapter, name in zip(chapters, "abcdefghijkl", strict=True)
    ]
    texts = [text for _, text in shape(parse_pdf(raw(pdf(*pages), name="a.pdf")))]
    assert [text for text in texts if text.startswith("Chapter")] == ["Chapter Alpha", "Chapter Beta", "Chapter Gamma"]


def test_the_repeated_header_row_of_a_table_stays(raw, pdf, lines, shape):
    pages = [lines("Product Stock", *(f"part {name} {row}" for row in "xyz")) for name in "abcd"]
    texts = [text for _, text in shape(parse_pdf(raw(pdf(*pages), name="a.pdf")))]
    assert sum("Product Stock" in text for text in texts) == 4


def test_the_title_and_dates_of_the_file_are_kept(raw, pdf, lines):
    info = "/Title (Release handbook) /Author (Ann) /CreationDate (D:20240501120000Z)"
    document = parse_pdf(raw(pdf(lines("Text."), info=info), name="x.pdf"))
    assert document.title == "Release handbook"
    assert document.metadata == {"author": "Ann", "created": "2024-05-01", "pages": "1"}


@pytest.mark.parametrize(
    ("content", "reason"), [(b"%PDF-1.7 and then nothing", "corrupt"), (b"not a PDF at all", "corrupt")]
)
def test_a_broken_file_is_refused(content, reason, raw):
    with pytest.raises(IngestError) as caught:
        parse_pdf(raw(content, name="a.pdf"))
    assert caught.value.reason == reason


def test_a_scan_is_refused(raw, pdf):
    with pytest.raises(IngestError) as caught:
        parse_pdf(raw(pdf([], []), name="a.pdf"))
    assert caught.value.reason == "no_text"


def test_a_file_with_a_password_is_refused(raw, pdf, lines):
    encryption = f"/Filter /Standard /V 1 /R 2 /Length 40 /P -4 /O <{'00' * 32}> /U <{'11' * 32}>"
    content = pdf(lines("Secret."), trailer=f"/Encrypt << {encryption} >> /ID [<00> <00>]")
    with pytest.raises(IngestError) as caught:
        parse_pdf(raw(content, name="a.pdf"))
    assert caught.value.reason == "encrypted"


def test_too_many_pages_are_refused(raw, pdf, lines, monkeypatch):
    monkeypatch.setattr("retrieval.ingest.parse.pdf._MAX_PAGES", 2)
    with pytest.raises(IngestError) as caught:
        parse_pdf(raw(pdf(*[lines("Text.")] * 3), name="a.pdf"))
    assert caught.value.reason == "too_large"
