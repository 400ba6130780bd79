"""*Document trace* in a real browser."""

import re

from playwright.sync_api import expect


def find(page, text):
    page.get_by_label("Document", exact=True).fill(text)
    page.get_by_role("button", name="Find").click()


def test_a_missing_document_is_found_at_its_first_drop(alice):
    page = alice.page
    alice.open("/explorer/?q=rollback&as=bob")
    expect(page.locator("[data-hits]")).not_to_contain_text("Breach")
    page.get_by_role("link", name="Document trace").click()
    expect(page).to_have_url(re.compile("tab=where"))
    find(page, "breach")
    page.get_by_role("list", name="Documents found").get_by_role("link", name="Breach of March").click()
    lifeline = page.locator("#lifeline")
    expect(lifeline.get_by_role("heading")).to_contain_text("Breach of March")
    expect(lifeline.locator(".is-loss")).to_have_count(1)
    expect(lifeline.locator(".is-loss")).to_have_attribute("data-step", "allowed")
    expect(lifeline.locator(".is-loss")).to_contain_text("clearance")
    expect(page).to_have_url(re.compile("pin="))
    page.reload()
    expect(lifeline.locator(".is-loss")).to_be_visible()


def test_what_would_have_kept_a_document_is_said(alice):
    alice.open("/explorer/?q=rollback&without=runbooks&tab=where&find=rolling")
    alice.page.get_by_role("list", name="Documents found").get_by_role("link", name="Rolling back").click()
    expect(alice.page.locator("#lifeline .is-loss")).to_have_attribute("data-step", "scope")
    expect(alice.page.locator("#lifeline .is-loss .step-remedy")).to_be_visible()


def test_a_document_that_was_shown_is_followed_to_the_end(alice):
    page = alice.page
    alice.open("/explorer/?q=rollback&tab=where&find=rolling")
    page.get_by_role("list", name="Documents found").get_by_role("link", name="Rolling back").click()
    expect(page.locator("#lifeline .is-good").first).to_be_visible()
    expect(page.locator("#lifeline .is-loss")).to_have_count(0)


def test_nobody_finds_what_he_may_not_see(start):
    browser = start(user="bob")
    browser.open("/explorer/?q=rollback&tab=where")
    find(browser.page, "breach")
    expect(browser.page.get_by_text("No document you can access")).to_be_visible()
