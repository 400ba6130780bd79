import pytest

from retrieval.errors import IngestError
from retrieval.ingest.parse import parse
from retrieval.text.document import RawDocument


def test_paragraphs_are_read_in_the_code_page_of_the_file(shape):
    content = (
        rb"{\rtf1\ansi\ansicpg1251{\fonttbl{\f0 Arial;}}\f0 \'cf\'f0\'e8\'e2\'e5\'f2\par {\b Bold} text \u8364 ?5\par}"
    )
    document = parse(RawDocument("a.rtf", content))
    assert document.source_type == "rtf"
    assert shape(document) == [("paragraph", "Привет"), ("paragraph", "Bold text €5")]


def test_it_is_known_without_its_name():
    assert parse(RawDocument("letter", rb"{\rtf1 Dear Ann,\par hello}")).source_type == "rtf"


@pytest.mark.parametrize(("content", "reason"), [(b"hello", "corrupt"), (rb"{\rtf1 }", "empty")])
def test_what_cannot_be_read_has_a_reason(content, reason):
    with pytest.raises(IngestError) as caught:
        parse(RawDocument("a.rtf", content))
    assert caught.value.reason == reason


def test_groups_nested_deeply_are_no_harm():
    assert (
        parse(RawDocument("a.rtf", rb"{\rtf1 " + b"{" * 100_000 + b"x" + b"}" * 100_000 + b"}")).blocks[0].text == "x"
    )
