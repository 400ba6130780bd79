"""The frame of every page: the title bar, the navigation, the drawer on phones, and the dialogs."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.axe import findings


def test_the_group_of_the_page_is_open_and_others_open_too(alice):
    page = alice.page
    alice.open("/access/users/")
    expect(page.locator(".rail-group[open] > .rail-heading")).to_have_text(["Access"])
    expect(page.locator(".rail-link[aria-current=page]")).to_have_text("Users")
    alice.go("System", "Presets")
    expect(page.get_by_role("heading", level=1)).to_have_text("Presets")
    expect(page.locator(".rail-group[open] > .rail-heading")).to_have_text(["System"])


@pytest.mark.parametrize(
    ("path", "crumbs"),
    [
        ("/connections/runbooks/edit/", ["Data", "Connections", "Runbooks", "Settings"]),
        ("/presets/corecube/", ["System", "Presets", "General search"]),
        ("/explorer/?q=rollback", ["Inspect", "Explorer"]),
        ("/chat/", ["Ask", "Chat", "New conversation"]),
        ("/password/", ["Account", "Change password"]),
    ],
)
def test_the_title_bar_says_where_a_page_is(alice, path, crumbs):
    alice.open(path)
    trail = alice.page.get_by_role("navigation", name="Breadcrumb")
    expect(trail.get_by_role("listitem")).to_have_text(crumbs)
    expect(trail.locator("[aria-current=page]").last).to_have_text(crumbs[-1])


def test_a_page_that_is_not_there_keeps_the_navigation(start):
    bob = start(user="bob")
    bob.watch.expect(404)
    bob.open("/access/users/")
    expect(bob.page.get_by_role("heading", level=1)).to_have_text("Not found")
    bob.go("Inspect", "Explorer")
    expect(bob.page.locator("#query")).to_be_visible()


@pytest.mark.parametrize("user", ["alice", "bob"])
def test_few_tab_stops_are_before_the_query(start, user):
    browser = start(user=user)
    browser.open("/explorer/?q=rollback")
    before = 0
    while not browser.page.locator("#query").evaluate("it => it === document.activeElement"):
        browser.press("Tab")
        before += 1
        assert before <= 6
    assert before - 1 <= 5  # The last one is the query itself.


def test_a_name_is_found_and_opened_without_a_mouse(alice):
    page = alice.page
    alice.open("/explorer/?q=rollback")
    page.locator("#query").focus()
    alice.press("Control+k")
    field = page.get_by_role("combobox", name="Find a page")
    expect(field).to_be_focused()
    expect(page.get_by_role("dialog").get_by_role("option").first).to_have_attribute("aria-selected", "true")
    assert findings(page) == []
    page.keyboard.type("roll")
    expect(page.get_by_role("dialog").get_by_role("option", name="Rolling back")).to_have_attribute(
        "aria-selected", "true"
    )
    alice.press("Escape")
    expect(field).to_be_hidden()
    expect(page.locator("#query")).to_be_focused()
    alice.press("Control+k")
    page.keyboard.type("compartments")
    alice.press("Enter")  # The results need not have arrived.
    expect(page).to_have_url(re.compile("/access/compartments/$"))
    page.wait_for_load_state()
    alice.press("Control+k")
    page.keyboard.type("compart")
    expect(page.get_by_role("dialog").get_by_role("option")).to_have_text(
        ["CompartmentsAccess", "New compartmentAccess", "Ask in chat", "Search in Explorer"]
    )
    alice.press("ArrowDown", "Enter")
    expect(page).to_have_url(re.compile("/access/compartments/new/$"))


def test_a_viewer_finds_only_what_is_in_scope(start, world):
    bob = start(user="bob")
    bob.open("/chat/")
    bob.page.get_by_role("link", name="Find").click()
    bob.page.keyboard.type("breach")
    expect(bob.page.locator(".found-none")).to_be_visible()
    expect(bob.page.locator("[role=option]")).to_have_text(["Ask in chat", "Search in Explorer"])
    bob.press("Enter")
    expect(bob.page.get_by_label("Question", exact=True)).to_have_value("breach")


def test_a_question_mark_shows_the_keys_but_not_in_a_field(alice):
    page = alice.page
    alice.open("/explorer/")
    alice.press("?")
    dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(dialog).to_be_hidden()
    expect(page.locator("#query")).to_have_value("?")
    page.evaluate("document.activeElement.blur()")
    alice.press("?")
    expect(dialog).to_be_visible()
    assert findings(page) == []
    alice.press("Escape")
    expect(dialog).to_be_hidden()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_the_navigation_is_a_drawer(start, scheme):
    browser = start(user="alice", width=390, color_scheme=scheme)
    page = browser.page
    browser.open("/access/users/")
    drawer, menu = page.locator("[data-rail]"), page.get_by_role("link", name="Menu", exact=True)
    expect(drawer).to_be_hidden()
    menu.click()
    expect(page.get_by_role("dialog", name="Menu")).to_be_visible()
    expect(page.get_by_role("link", name="Close menu").first).to_be_focused()
    assert findings(page) == []
    for _ in range(25):
        browser.press("Tab")
        assert page.evaluate(
            "document.activeElement === document.body || !document.activeElement.closest('main, .topbar')"
        )
    browser.press("Escape")
    expect(drawer).to_be_hidden()
    expect(menu).to_be_focused()
    menu.click()
    page.mouse.click(370, 400)
    expect(drawer).to_be_hidden()
    menu.click()
    browser.go("Access", "Groups")
    expect(page.get_by_role("heading", level=1)).to_have_text("Groups")
    expect(drawer).to_be_hidden()
    assert not browser.scrolls_sideways()


def test_without_javascript_the_drawer_opens_and_names_are_found(start):
    browser = start(user="alice", width=390, java_script_enabled=False)
    page = browser.page
    browser.open("/access/users/")
    page.get_by_role("link", name="Menu", exact=True).click()
    expect(page.locator("[data-rail]")).to_be_visible()
    page.get_by_role("link", name="Close menu").first.click()
    expect(page.locator("[data-rail]")).to_be_hidden()
    page.get_by_role("link", name="Find").click()
    page.get_by_label("Name", exact=True).fill("vault")
    page.get_by_role("main").get_by_role("button", name="Find").click()
    page.get_by_role("option", name="Vault").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Vault")
