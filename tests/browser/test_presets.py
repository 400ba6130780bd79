"""The presets' pages in a real browser."""

import pytest

from retrieval.models import PresetVersion

pytestmark = pytest.mark.browser


def fill(browser, name, value):
    box = browser.find(f"[name='{name}']")
    box.clear()
    box.send_keys(value)


@pytest.mark.parametrize("javascript", [True, False])
def test_a_draft_is_saved_tried_and_promoted(start, javascript):
    browser = start(javascript=javascript)
    browser.sign_in("alice")
    browser.open("/presets/corecube/")
    fill(browser, "blend.dense", "7")
    fill(browser, "fusion.pool", "40")
    browser.find(".tunable-save button").click()
    browser.until(lambda: browser.all(".tunable .field-error"))
    assert browser.find("[name='fusion.pool']").get_attribute("value") == "40"
    fill(browser, "blend.dense", "0.7")
    browser.find(".tunable-save button").click()
    browser.until(lambda: browser.all(".changes"))
    assert [row.text for row in browser.all(".changes tbody th")] == ["fusion.pool", "blend.dense"]
    browser.find("a[href*='draft=1']").click()
    browser.until(lambda: browser.all("[data-ask]"))
    browser.ask("rollback")
    browser.until(lambda: "Draft, version 1" in browser.find("#results").text)
    browser.open("/presets/corecube/")
    browser.find(".draft a.is-primary").click()
    browser.until(lambda: browser.all("[name=fingerprint]"))
    browser.find("form.form-actions button").click()
    browser.until(lambda: browser.all(".notice.is-good"))
    assert PresetVersion.objects.get().status == "live"
    assert browser.complaints() == []
