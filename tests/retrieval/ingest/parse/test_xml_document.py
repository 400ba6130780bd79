import pytest

from retrieval.errors import IngestError
from retrieval.ingest.parse import parse

BOMB = '<!DOCTYPE r [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><r><x>&b;</x></r>'


def reason_of(document):
    with pytest.raises(IngestError) as caught:
        parse(document)
    return caught.value.reason


def test_each_part_below_the_root_is_lines_of_paths(shape, raw):
    xml = (
        '<project xmlns="http://m"><!-- c --><model>4</model><deps scope="test"><dep><id>junit</id></dep></deps>'
        "<para>Text with a <b>bold</b> word.</para><empty/></project>"
    )
    document = parse(raw(xml, "pom.xml"))
    assert shape(document) == [
        ("paragraph", "model: 4"),
        ("paragraph", 'deps scope="test"\ndeps.dep.id: junit'),
        ("paragraph", "para: Text with a bold word."),
    ]
    assert (document.title, document.source_type) == ("Pom", "xml")


def test_a_web_page_in_xml_is_a_web_page(raw):
    page = "<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'><body><p>Hello.</p></body></html>"
    assert parse(raw(page, "page.xml")).source_type == "html"


@pytest.mark.parametrize(("name", "encoding"), [("a.xml", "utf-8"), ("a.rss", "utf-16"), ("unnamed", "utf-8")])
def test_a_file_that_declares_entities_is_refused(raw, name, encoding):
    assert reason_of(raw(f"<?xml version='1.0'?>{BOMB}".encode(encoding), name)) == "corrupt"


def test_nothing_is_fetched_from_outside(raw, tmp_path):
    secret = tmp_path / "secret.dtd"
    secret.write_text('<!ENTITY leak "zanzibar">')
    xml = f'<!DOCTYPE r SYSTEM "{secret.as_uri()}"><r><x>before &leak; after</x></r>'
    assert "zanzibar" not in str(parse(raw(xml, "a.xml")))


def test_a_drawing_and_a_binary_file_are_no_documents(raw):
    assert reason_of(raw("<?xml version='1.0'?><svg xmlns='http://s'><text>x</text></svg>", "a")) == "unsupported_type"
    assert reason_of(raw(b"\0\1\2\3" * 99, "a.xml")) == "unsupported_type"


def test_damaged_xml_is_read_as_far_as_it_goes(shape, raw):
    assert shape(parse(raw("<r><a>one</a><b>two & three</b>", "a.xml"))) == [
        ("paragraph", "a: one"), ("paragraph", "b: two three"),
    ]  # fmt: skip
    assert reason_of(raw("no markup at all", "a.xml")) == "corrupt"


def test_deep_and_wide_files_are_bounded(raw):
    assert reason_of(raw("<a>" * 100_000 + "</a>" * 100_000, "a.xml")) in {"empty", "corrupt"}
    assert reason_of(raw(f"<r>{'<a>x</a>' * 100_001}</r>", "a.xml")) == "too_large"
