"""What the quality filter would drop, tried out on a source's page."""

import pytest

from retrieval.models import Chunk

pytestmark = pytest.mark.browser


def test_a_threshold_is_tried_without_leaving_the_page(browser, world):
    Chunk.objects.filter(connection_id=world.runbooks.pk).update(quality=0.15, quality_parts={"legal": 0.85})
    browser.sign_in("alice")
    browser.open("/sources/runbooks/")
    browser.until(lambda: "Would drop 2 of 2 chunks" in browser.find("#quality").text)
    box = browser.find("#id_least")
    box.clear()
    box.send_keys("0.1\n")
    browser.until(lambda: "Would drop none of 2 chunks" in browser.find("#quality").text)
    assert browser.driver.current_url.endswith("/sources/runbooks/")
    browser.resize(390, 844)
    assert not browser.scrolls_sideways()
    assert browser.complaints() == []
