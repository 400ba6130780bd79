"""Clearances and keys in a real browser."""

import re

from playwright.sync_api import expect

from corecube.models import Grant, User
from corecube.scope import Sensitivity
from explorer.components.user_menu import MAX_LISTED
from tests.browser.axe import findings


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
    dialog = alice.page.get_by_role("dialog")
    expect(dialog).to_contain_text("Vault")
    assert findings(alice.page) == []
    alice.press("Escape")
    expect(clearance).to_be_focused()
    expect(clearance).to_have_value("internal")
    clearance.select_option("restricted")
    dialog.get_by_role("button", name="Give access to 1 user").click()
    expect(clearance).to_be_focused()
    expect(alice.page.locator("#announcement")).to_contain_text("restricted")
    assert Grant.objects.get(group__name="engineers").clearance == Sensitivity.RESTRICTED
    # Until htmx has settled new content, its forms are plain ones.
    expect(alice.page.locator(".htmx-added, .htmx-settling")).to_have_count(0)
    clearance.select_option("none")
    expect(dialog.get_by_role("button", name="Remove access for 1 user")).to_be_visible()
    expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    alice.press("Enter")
    expect(clearance).to_have_value("restricted")
    search(bob, "zanzibar")
    expect(bob.page.locator("nav.scope")).to_contain_text("Vault")
    expect(bob.page.locator("[data-hits]")).to_contain_text("Breach of March")


def test_a_new_user_with_one_compartment_is_verified_after_six_clicks(alice, world):
    page = alice.page
    alice.open("/overview/")
    # Two clicks: one opens the group of links.
    alice.go("Access", "Users")
    page.get_by_role("link", name="New user").click()
    expect(page.get_by_label("Username")).to_be_focused()
    page.get_by_label("Username").fill("dora")
    page.get_by_label("Engineering", exact=True).check()
    expect(page.locator("#visible")).to_contain_text("Runbooks")
    page.get_by_role("button", name="Add user").click()
    page.get_by_role("link", name="Run as dora").click()
    scope = page.locator("#results, main").first
    expect(scope).to_contain_text("Runbooks")
    assert "as=dora" in page.url


def test_a_team_gets_access_with_a_preview_of_who_gains_what(alice, world):
    page = alice.page
    alice.open("/access/clearances/")
    page.get_by_role("link", name="Give access").click()
    page.get_by_label("engineers", exact=True).check()
    page.get_by_label("Finance", exact=True).check()
    expect(page.locator("#effect")).to_contain_text("bob Ledger")
    page.get_by_role("button", name="Give access").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("engineers")
    assert Grant.objects.get(group__name="engineers", compartment__slug="finance").clearance == Sensitivity.INTERNAL


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


def test_a_user_who_is_ticked_while_the_list_loads_stays_ticked(start, world):
    User.objects.bulk_create(User(username=f"user{number:03}") for number in range(MAX_LISTED))
    alice, held = start(user="alice"), []
    page = alice.page

    def hold_first(route):
        if held:
            route.continue_()
        held.append(route)

    page.route(re.compile("named=char"), hold_first)
    page.goto("/access/give/")
    with page.expect_request(re.compile("named=char")):
        page.get_by_label("Find a user").fill("char")
    page.get_by_label("user001").check()
    expect(page.get_by_label("charlie")).to_be_visible()
    expect(page.get_by_label("user002")).to_have_count(0)
    expect(page.get_by_label("user001")).to_be_checked()
    # htmx reports the request that it gave up.
    assert all("htmx:" in line for line in alice.watch.complaints())


def test_among_many_users_one_is_found_by_name(start, world):
    User.objects.bulk_create(User(username=f"user{number:03}") for number in range(MAX_LISTED))
    alice = start(user="alice")
    alice.open("/explorer/?q=rollback")
    field = alice.page.get_by_label("Run as")
    field.fill("bo")
    expect(alice.page.locator("#run-as-names option")).to_have_count(1)
    field.fill("bob")
    field.press("Tab")
    expect(alice.page).to_have_url(re.compile("as=bob"))
    alice.open("/access/give/")
    alice.page.get_by_label("user001").check()
    alice.page.get_by_label("Find a user").fill("char")
    expect(alice.page.get_by_label("user002")).to_have_count(0)
    alice.page.get_by_label("charlie").check()
    alice.page.get_by_label("Find a user").fill("user09")
    expect(alice.page.locator("#users :checked")).to_have_count(2)
    expect(alice.page.locator("#users input")).to_have_count(12)
