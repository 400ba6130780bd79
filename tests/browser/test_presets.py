"""The presets' pages in a real browser."""

import pytest
from playwright.sync_api import expect

from retrieval.models import PresetVersion


@pytest.mark.parametrize("javascript", [True, False])
def test_a_draft_is_saved_tried_and_promoted(start, javascript):
    browser = start(user="alice", java_script_enabled=javascript)
    page = browser.page
    browser.watch.expect(422)
    browser.open("/presets/corecube/")
    page.locator("[name='blend.dense']").fill("7")
    page.locator("[name='fusion.pool']").fill("40")
    page.locator(".tunable-save button").click()
    expect(page.locator(".tunable .field-error")).to_have_count(1)
    expect(page.locator("[name='fusion.pool']")).to_have_value("40")
    page.locator("[name='blend.dense']").fill("0.7")
    page.locator(".tunable-save button").click()
    expect(page.locator(".changes tbody th")).to_have_text(["fusion.pool", "blend.dense"])
    page.locator("a[href*='draft=1']").click()
    browser.ask("rollback")
    expect(page.locator("#results")).to_contain_text("Draft, version 1")
    browser.open("/presets/corecube/")
    page.locator(".draft a.is-primary").click()
    page.locator("[name=fingerprint]").wait_for(state="attached")
    page.locator("form.form-actions button").click()
    page.locator(".notice.is-good").wait_for()
    assert PresetVersion.objects.get().status == "live"
