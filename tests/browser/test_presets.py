"""The presets' pages in a real browser."""

import re

import pytest
from playwright.sync_api import expect

from retrieval.evaluation.question_sets import save_case, set_named
from retrieval.evaluation.runs import run_waiting
from retrieval.models import Chunk, Judgment, PresetVersion


@pytest.mark.parametrize("javascript", [True, False])
def test_a_draft_is_saved_tried_and_promoted(start, javascript):
    browser = start(user="alice", java_script_enabled=javascript)
    page = browser.page
    browser.watch.expect(422)
    browser.open("/presets/corecube/")
    for section in ("Blend", "Fusion"):
        page.locator("summary", has_text=section).click()
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


@pytest.fixture
def judged(world):
    """A question set with a judged question."""
    save_case(set_named("Release questions", actor=world.alice), "rollback", actor=world.alice)
    chunk = Chunk.objects.get(document__external_id="rollback.md", ordinal=0)
    Judgment.objects.create(
        query="rollback", document_id=chunk.document_id, content_hash=chunk.content_hash, grade=3, by=world.alice
    )


def test_a_change_is_measured_and_promoted_after_eight_clicks(alice, judged):
    page = alice.page
    alice.count_clicks()
    alice.open("/overview/")
    alice.go("System", "Presets")
    page.get_by_role("link", name="General search", exact=True).click()
    page.locator("summary", has_text="Fusion").click()
    page.get_by_label("Pool fusion.pool", exact=True).click()
    page.get_by_label("Pool fusion.pool", exact=True).fill("40")
    page.get_by_role("button", name="Save draft and measure").click()
    expect(page.get_by_role("progressbar")).to_have_count(2)
    run_waiting()
    expect(page.locator("#effect")).to_contain_text("nDCG@10")
    expect(page.locator("#effect .effect-verdict")).to_contain_text("No difference in nDCG (1 judged question).")
    page.get_by_role("link", name="Promote …", exact=True).first.click()
    page.get_by_role("button", name="Promote", exact=True).click()
    expect(page.locator(".notice.is-good")).to_be_visible()
    assert alice.clicks == 8
    assert PresetVersion.objects.get().values == {"fusion.pool": 40}
    # What the draft was measured with is the figure of the live version now.
    page.get_by_label("Search settings").fill("fusion.pool")
    page.get_by_label("Pool fusion.pool", exact=True).fill("60")
    page.get_by_role("button", name="Save draft and measure").click()
    expect(page.get_by_role("progressbar")).to_have_count(1)


def test_settings_are_found_moved_and_reset(alice):
    page = alice.page
    alice.open("/presets/corecube/")
    page.get_by_label("Search settings").fill("freshness weight")
    expect(page.locator("[data-setting]:visible")).to_have_count(1)
    number, slider = (
        page.get_by_label("Freshness blend.freshness", exact=True),
        page.get_by_label("Slider of blend.freshness"),
    )
    expect(slider).to_have_value("10")
    slider.focus()
    alice.press("ArrowRight", "ArrowRight")
    expect(number).to_have_value("0.12")
    page.get_by_label("Search settings").fill("")
    page.get_by_label("Changed only").check()
    expect(page.locator("[data-setting]:visible")).to_have_count(1)
    expect(page.locator("[data-settings-group]:visible")).to_have_text([re.compile("Blend.*1 changed", re.DOTALL)])
    page.get_by_role("button", name="Reset blend.freshness").click()
    expect(number).to_have_value("0.1")
    # A range of many orders of magnitude is walked through in ratios, and its ends are reached.
    page.get_by_label("Changed only").uncheck()
    page.locator("summary", has_text="Vector search").click()
    page.get_by_label("Slider of dense.files_below").focus()
    alice.press("End")
    expect(page.get_by_label("Files below dense.files_below", exact=True)).to_have_value("10000000")
    alice.press("Home")
    expect(page.get_by_label("Files below dense.files_below", exact=True)).to_have_value("0")
    page.get_by_role("button", name="Reset all to the shipped values in Vector search").click()
    expect(page.get_by_label("Files below dense.files_below", exact=True)).to_have_value("300000")


@pytest.mark.parametrize(
    ("path", "setting"),
    [
        ("/presets/corecube/#id_blend.dense", "id_blend.dense"),
        ("/health/#setting-CORECUBE_PORT", "setting-CORECUBE_PORT"),
    ],
)
def test_a_link_to_a_setting_opens_what_it_is_folded_in(alice, path, setting):
    alice.open(path)
    expect(alice.page.locator(f"[id='{setting}']")).to_be_in_viewport()
