"""A document's page, as data."""

import pytest

from corecube.access import Principal, scope_for
from explorer.pages.documents.views import document_panel, size, web_link
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
    scope = scope_for(Principal(world.bob))
    chunk = document.chunks.first()
    chunk.heading_path = ["Staging"]
    panel = document_panel(document, [chunk, chunk], scope=scope, now=document.synced_at)
    assert [block.headings for block in panel.chunks] == [("Staging",), ()]
    assert (panel.source, panel.synced) == ("Runbooks", "just now")
