import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval.errors import IngestError
from retrieval.ingest.parse import parse
from retrieval.ingest.parse.formats import TEXT
from retrieval.text.document import RawDocument
from tests.profiles import examples

OFFICE_NAMES = ["a.xlsx", "a.xls", "a.ods", "a.pptx", "a.epub", "a.msg"]
MARKUP_NAMES = ["a.md", "a.html", "a.txt", "a.rst"]
DATA_NAMES = ["a.json", "a.ndjson", "a.ipynb", "a.xml"]
CODE_NAMES = ["a.py", "a.ts", "a.go", "a.rs", "a.cpp", "a.sh", "a.sql", "a.php", "a.rb", "a.kt", "a.yaml", "a.lua"]
TEXT_NAMES = ["a.csv", "a.eml", "a.rtf"]
#: What the files of these names begin with, so that the parsers are reached.
STARTS = [b"", b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"{\\rtf1 ", b"Subject: x\n", b"a,b\n"]
REASONS = {"empty", "unsupported_type", "corrupt", "encrypted", "no_text", "too_large", "encoding"}


@pytest.mark.parametrize(
    ("name", "media_type", "content", "source_type"),
    [
        ("a.MD", "", "# T\n\nx", "markdown"),
        ("a.md", "text/html", "# T\n\nx", "markdown"),
        ("page", "text/html; charset=utf-8", "<p>x</p>", "html"),
        ("page", "text/plain", "<!doctype HTML><p>x</p>", "html"),
        ("page", "", "<?xml version='1.0'?>\n<html><body><p>x</p></body></html>", "html"),
        ("LICENSE", "", "Permission is hereby granted", "text"),
        ("settings.yml", "", "a: b", "code"),
        ("Makefile", "", "all: x", "code"),
        ("data", "application/json", "[1]", "json"),
        ("a.ndjson", "", '{"a": 1}', "json"),
        ("feed", "", "<rss><item><title>x</title></item></rss>", "feed"),
        ("a.markdown", "application/octet-stream", "x", "markdown"),
    ],
)
def test_the_name_then_the_type_then_the_content_choose_the_parser(name, media_type, content, source_type):
    assert parse(RawDocument(name, content.encode(), media_type)).source_type == source_type


def test_a_pdf_and_a_word_file_are_known_without_a_name(pdf, lines, docx_bytes):
    assert parse(RawDocument("download", pdf(lines("Text.")))).source_type == "pdf"
    word = docx_bytes(lambda document: document.add_paragraph("Text."))
    assert parse(RawDocument("download", word)).source_type == "docx"


def reason_of(name, content, media_type=""):
    with pytest.raises(IngestError) as caught:
        parse(RawDocument(name, content, media_type))
    assert str(caught.value)
    return caught.value.reason


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.md", b"", "empty"),
        ("a.pdf", b" \n\t", "empty"),
        ("a.md", b"---\ntitle: Only this\n---\n", "empty"),
        ("photo.jpg", b"\xff\xd8\xff\xe0\0\x10JFIF\0", "unsupported_type"),
        ("a.txt", b"\x01\x02\x03\x04\0\0\0", "unsupported_type"),
        ("drawing.ps", b"%!PS-Adobe-3.0", "unsupported_type"),
        ("icon.svg", b"<svg xmlns='x'></svg>", "unsupported_type"),
        ("a.zip", b"PK\x05\x06" + b"\0" * 18, "unsupported_type"),
        ("old.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, "corrupt"),
        ("new.docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le"), "encrypted"),
        ("a.docx", b"not an archive", "corrupt"),
        ("a.txt", b"x" * (TEXT.max_bytes + 1), "too_large"),
        ("a.html", b"<p>text" * (7 * 1024**2), "too_large"),
    ],
    ids=lambda value: str(value[:20]),
)
def test_what_cannot_be_read_has_a_reason(name, content, reason):
    assert reason_of(name, content) == reason


def test_a_parser_that_breaks_is_a_corrupt_file(docx_bytes):
    content = docx_bytes(lambda document: document.add_paragraph("x"))
    assert reason_of("a.docx", content.replace(b"word/styles.xml", b"word/stales.xml")) == "corrupt"


def test_a_refusal_names_no_content():
    with pytest.raises(IngestError) as caught:
        parse(RawDocument("passphrase.docx", b"zanzibar"))
    assert "zanzibar" not in str(caught.value)


def read(name, content):
    """Return the document, or the reason for which there is none."""
    try:
        return parse(RawDocument(name, content)), ""
    except IngestError as error:
        return None, error.reason


@settings(max_examples=examples(100))
@given(st.sampled_from([*MARKUP_NAMES, *DATA_NAMES, *CODE_NAMES, "a.pdf", "a.docx", "a"]), st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(name, content):
    document, reason = read(name, content)
    assert reason in REASONS if document is None else document.blocks and document.title


@settings(max_examples=examples(100))
@given(st.sampled_from([*OFFICE_NAMES, *TEXT_NAMES]), st.sampled_from(STARTS), st.binary(max_size=600))
def test_any_bytes_of_an_office_program_are_read_or_refused(name, start, content):
    document, reason = read(name, start + content)
    assert reason in REASONS if document is None else document.blocks and document.title


@settings(max_examples=examples(100))
@given(st.sampled_from([*MARKUP_NAMES, *CODE_NAMES]), st.text(max_size=300))
def test_any_text_is_read_or_refused(name, text):
    document, reason = read(name, text.encode(errors="replace"))
    assert reason in REASONS - {"corrupt"} if document is None else all(block.text.strip() for block in document.blocks)
