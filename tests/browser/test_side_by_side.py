"""Every preset's answer to one question in a real browser."""

import re

from playwright.sync_api import expect

from retrieval.presets.catalog import TUNED


def test_presets_stand_beside_each_other(alice):
    page = alice.page
    alice.open("/side-by-side/")
    alice.ask("rollback staging")
    columns = page.locator(".sides").first.locator(".side-column")
    expect(columns).to_have_count(len(TUNED))
    expect(page).to_have_url(re.compile("q=rollback"))
    expect(columns.first.locator(".side-hit").first).to_contain_text("Rolling back")
    tops = {column.bounding_box()["y"] for column in columns.all()}
    assert len(tops) == 1
    passage = page.locator(".side-passage").first
    expect(passage.locator(".passage-text")).to_be_hidden()
    passage.locator("summary").click()
    expect(passage.locator(".passage-text")).to_be_visible()
    alice.resize(390)
    assert len({column.bounding_box()["x"] for column in columns.all()}) == 1
    assert not alice.scrolls_sideways()


def test_a_person_and_a_chip_run_it_again(alice):
    page = alice.page
    alice.open("/side-by-side/?q=rollback")
    expect(page.locator(".side-source").filter(has_text="Vault")).not_to_have_count(0)
    page.get_by_label("Run as").select_option("bob")
    expect(page).to_have_url(re.compile("as=bob"))
    expect(page.locator(".side-source").filter(has_text="Vault")).to_have_count(0)
    page.locator(".sources-open").click()
    page.locator(".source", has_text="Runbooks").click()
    expect(page).to_have_url(re.compile("without=runbooks"))
    expect(page.locator(".side-hit")).to_have_count(0)


def test_without_javascript_it_is_all_there(start):
    browser = start(user="alice", java_script_enabled=False)
    browser.open("/side-by-side/")
    browser.page.locator("#query").fill("rollback staging")
    browser.page.get_by_role("button", name="Run all").click()
    expect(browser.page.locator(".sides").first.locator(".side-column")).to_have_count(len(TUNED))
    expect(browser.page.locator(".chart table:visible").first).to_be_visible()
    browser.page.locator(".side-passage summary").first.click()
    expect(browser.page.locator(".passage-text:visible").first).to_be_visible()
