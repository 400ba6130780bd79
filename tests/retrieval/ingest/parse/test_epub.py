import pytest

from retrieval.errors import IngestError
from retrieval.ingest.parse import parse
from retrieval.text.document import RawDocument

CONTAINER = '<container><rootfiles><rootfile full-path="OPS/book.opf"/></rootfiles></container>'


def book(chapters, *, spine=None, more=None):
    """Return the parts of a book of (file name, body) chapters."""
    items = "".join(
        f'<item id="{name}" href="text%20of/{name}.xhtml" media-type="application/xhtml+xml"/>' for name in chapters
    )
    refs = "".join(f'<itemref idref="{name}"/>' for name in spine or chapters)
    facts = "<dc:title>Sailing</dc:title><dc:creator>Ann</dc:creator><dc:language>en</dc:language>"
    nav = '<item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>'
    lists = f'<manifest>{items}{nav}</manifest><spine><itemref idref="nav"/>{refs}</spine>'
    package = f'<package xmlns:dc="d"><metadata>{facts}</metadata>{lists}</package>'
    head = "<?xml version='1.0' encoding='utf-8'?><html><head><title>t</title></head>"
    pages = {f"OPS/text of/{name}.xhtml": f"{head}<body>{body}</body></html>" for name, body in chapters.items()}
    contents = {"OPS/nav.xhtml": "<html><body><nav><a>One</a></nav></body></html>"}
    return {"META-INF/container.xml": CONTAINER, "OPS/book.opf": package, **pages, **contents, **(more or {})}


ONE, TWO = "<h1>Wind</h1><p>It blows «hard».</p><h2>North</h2><ul><li>cold</li></ul>", "<h1>Sea</h1><p>It is wet.</p>"


def test_chapters_come_in_the_order_of_the_spine(zipped, shape):
    document = parse(RawDocument("a.epub", zipped(book({"b": TWO, "a": ONE, "blank": " "}, spine=["a", "b", "blank"]))))
    assert (document.title, document.source_type) == ("Sailing", "epub")
    assert (document.metadata["author"], document.metadata["language"]) == ("Ann", "en")
    assert shape(document) == [
        (2, "Wind"),
        ("paragraph", "It blows «hard»."),
        (3, "North"),
        ("list", "- cold"),
        (2, "Sea"),
        ("paragraph", "It is wet."),
    ]


def test_a_book_is_known_without_its_name(zipped):
    assert parse(RawDocument("download", zipped(book({"a": ONE})))).source_type == "epub"


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        (book({"a": ""}), "empty"),
        (
            book(
                {"a": ONE},
                more={"META-INF/encryption.xml": '<m Algorithm="http://www.w3.org/2001/04/xmlenc#aes128-cbc"/>'},
            ),
            "encrypted",
        ),
        (book({"a": ONE}, more={"META-INF/container.xml": "<container/>"}), "corrupt"),
        (book({"a": ONE}, more={"OPS/book.opf": '<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>'}), "corrupt"),
        (book({"a": ONE}, more={"big": bytes(64 * 1024 * 1024)}), "too_large"),
        ({"META-INF/container.xml": CONTAINER.replace("OPS/book.opf", "../../etc/passwd")}, "corrupt"),
    ],
    ids=["empty", "locked", "no package", "entities", "bomb", "path"],
)
def test_what_cannot_be_read_has_a_reason(zipped, parts, reason):
    with pytest.raises(IngestError) as caught:
        parse(RawDocument("a.epub", zipped(parts)))
    assert caught.value.reason == reason
