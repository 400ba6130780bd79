import pytest

from retrieval.errors import IngestError
from retrieval.ingest.parse import parse
from retrieval.text.document import RawDocument

RSS = """<?xml version="1.0"?>
<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/" xmlns:dc="http://purl.org/dc/elements/1.1/">
<channel><title>News</title><language>en</language><lastBuildDate>Mon, 09 Dec 2024 20:26:59 +0000</lastBuildDate>
<item><title>Tea &amp;amp; milk</title><link>https://x.org/1</link><dc:creator>Ann</dc:creator>
<pubDate>Tue, 19 Nov 2024 13:30:02 +0000</pubDate><category>Food</category>
<description>Short.</description>
<content:encoded><![CDATA[<h2>How</h2><p>Boil <b>water</b>.</p><script>evil()</script>]]></content:encoded></item>
<item><title>Two</title><description>Only this &lt; that</description><pubDate>soon</pubDate></item>
</channel></rss>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><title>Atom</title><entry><title>One</title>
<link rel="self" href="https://x.org/self"/><link href="https://x.org/1"/><updated>2024-01-02T03:04:05Z</updated>
<author><name>Bob</name></author><category term="Law"/>
<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>Text.</p></div></content></entry></feed>"""


def test_rss_items_stand_under_their_titles(shape, raw):
    document = parse(raw(RSS, "feed.xml"))
    assert shape(document) == [
        (2, "Tea & milk"),
        ("paragraph", "2024-11-19T13:30:02+00:00 · Ann · https://x.org/1"),
        (4, "How"),
        ("paragraph", "Boil water."),
        ("paragraph", "Topics: Food"),
        (2, "Two"),
        ("paragraph", "soon"),
        ("paragraph", "Only this < that"),
    ]
    assert (document.title, document.source_type) == ("News", "feed")
    assert document.metadata == {"language": "en", "modified": "2024-12-09T20:26:59+00:00"}


def test_atom_entries_are_read_alike(shape, raw):
    assert shape(parse(raw(ATOM, "x.atom"))) == [
        (2, "One"),
        ("paragraph", "2024-01-02T03:04:05+00:00 · Bob · https://x.org/1"),
        ("paragraph", "Text."),
        ("paragraph", "Topics: Law"),
    ]


@pytest.mark.parametrize(("name", "media_type"), [("feed", "application/rss+xml"), ("feed", ""), ("a.rss", "")])
def test_a_feed_is_known_by_its_type_or_content(name, media_type):
    assert parse(RawDocument(name, RSS.encode(), media_type)).source_type == "feed"


def test_too_many_items_are_refused(raw):
    with pytest.raises(IngestError) as caught:
        parse(raw(f"<rss><channel>{'<item><title>x</title></item>' * 10_001}</channel></rss>", "a.rss"))
    assert caught.value.reason == "too_large"
