"""Clearances and keys in a real browser."""

from playwright.sync_api import expect

from corecube.models import Grant
from corecube.scope import Sensitivity


def search(browser, text):
    browser.open("/explorer/")
    browser.ask(text)
    browser.page.locator("[data-panel=tab]").first.wait_for(state="attached")


def test_a_clearance_is_raised_and_the_scope_follows(start, world):
    alice, bob = start(user="alice"), start(user="bob")
    search(bob, "zanzibar")
    expect(bob.page.locator("nav.scope")).not_to_contain_text("Vault")
    expect(bob.page.locator("#results")).not_to_contain_text("Breach")
    alice.open("/access/clearances/")
    clearance = alice.page.get_by_role("row", name="engineers").get_by_label("Engineering")
    expect(clearance).to_have_value("internal")
    clearance.select_option("restricted")
    expect(alice.page.locator("#announcement")).to_contain_text("restricted")
    assert Grant.objects.get(group__name="engineers").clearance == Sensitivity.RESTRICTED
    search(bob, "zanzibar")
    expect(bob.page.locator("nav.scope")).to_contain_text("Vault")
    expect(bob.page.locator("[data-hits]")).to_contain_text("Breach of March")


def test_a_key_is_shown_once_works_and_is_revoked(start, world, live_server):
    browser = start(user="alice")
    page = browser.page
    browser.open("/access/keys/")
    page.get_by_role("link", name="New key").click()
    page.get_by_label("Name", exact=True).fill("nightly report")
    page.get_by_role("button", name="Create key").click()
    secret = page.get_by_label("API key").input_value()
    ask = {"headers": {"Authorization": f"Bearer {secret}"}, "data": {"query": "rollback"}}
    assert browser.context.request.post("/api/v1/search", **ask).status == 200
    page.get_by_role("link", name="Done").click()
    assert secret not in page.content()
    page.get_by_role("link", name="Revoke … nightly report").click()
    page.get_by_role("button", name="Revoke key").click()
    expect(page.get_by_role("row", name="nightly report")).to_contain_text("revoked")
    browser.watch.expect(401)
    assert browser.context.request.post("/api/v1/search", **ask).status == 401
