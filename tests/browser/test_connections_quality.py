"""Quality filter preview, tried out on a connection's page."""

from playwright.sync_api import expect

from retrieval.models import Chunk


def test_a_threshold_is_tried_without_leaving_the_page(alice, world):
    Chunk.objects.filter(connection_id=world.runbooks.pk).update(quality=0.15, quality_parts={"legal": 0.85})
    alice.open("/connections/runbooks/")
    quality = alice.page.locator("#quality")
    expect(quality).to_contain_text("2 of 2 chunks fall below")
    # Until htmx has settled new content, its forms are plain ones.
    expect(alice.page.locator(".htmx-added, .htmx-settling")).to_have_count(0)
    quality.locator("#id_minimum").fill("0.1")
    quality.locator("#id_minimum").press("Enter")
    expect(quality).to_contain_text("No chunks fall below")
    assert alice.page.url.endswith("/connections/runbooks/")
    alice.resize(390)
    assert not alice.scrolls_sideways()
