"""A document's page, as data."""

import pytest

from explorer.pages.documents.views import chunk_blocks, size, web_link
from retrieval.models import Document


@pytest.mark.parametrize(("count", "words"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KB"), (3 * 2**20, "3.0 MB")])
def test_sizes(count, words):
    assert size(count) == words


@pytest.mark.parametrize("uri", ["javascript:alert(1)", "file:///etc/passwd", "//elsewhere", "", "httpx://a"])
def test_only_web_addresses_become_links(uri):
    assert web_link(uri) == ""
    assert web_link("https://wiki/page") == "https://wiki/page"


def test_a_heading_path_stands_where_it_changes(world):
    document = Document.objects.get(title="Rolling back")
    chunk = document.chunks.first()
    chunk.heading_path = ["Staging"]
    assert [block["headings"] for block in chunk_blocks([chunk, chunk], document.source_type)] == [("Staging",), ()]
