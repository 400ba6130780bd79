"""The console by keyboard alone."""

import re

import pytest
from playwright.sync_api import expect

_HERE = "document.activeElement.outerHTML.slice(0, 100)"


def tab_until(browser, wanted, limit=80):
    """Press Tab until the wanted element has the focus."""
    for _ in range(limit):
        browser.press("Tab")
        if wanted.evaluate("element => element === document.activeElement"):
            return
    pytest.fail(f"{limit} times Tab did not lead there, but to {browser.page.evaluate(_HERE)}")


def test_the_first_tab_offers_to_skip_the_rail(alice):
    page = alice.page
    alice.open("/connections/")
    alice.press("Tab")
    skip = page.get_by_role("link", name="Skip to content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    alice.press("Enter")
    expect(page.locator("main")).to_be_focused()
    alice.press("Tab")
    assert page.evaluate("document.activeElement.closest('main') !== null")


def test_a_search_is_asked_read_and_narrowed_without_a_mouse(alice):
    page = alice.page
    alice.open("/explorer/")
    expect(page.locator("#query")).to_be_focused()
    page.keyboard.type("rollback")
    alice.press("Enter")
    page.locator("[data-hits]").wait_for()
    tab_until(alice, page.locator(".sources-open"))
    alice.press("Enter")
    tab_until(alice, page.locator("a.source").first)
    alice.press("Enter")
    expect(page.locator("a.source.is-off")).to_have_count(1)
    alice.press("Escape")
    tab_until(alice, page.get_by_role("link", name="Trace", exact=True))
    alice.press("Enter")
    expect(page).to_have_url(re.compile("tab=trace"))
    expect(page.locator("[data-panel=tab][data-name=trace]")).to_be_visible()


def test_tab_walks_through_a_page_in_its_order_and_out_of_it(alice):
    page = alice.page
    alice.open("/access/clearances/")
    focusable = "a[href], button, select, input:not([type=hidden]), [tabindex='0']"
    wanted = page.locator(f"main :is({focusable}):visible").count()
    page.locator("main").focus()
    reached, above = 0, -1
    for _ in range(wanted):
        alice.press("Tab")
        inside, place = page.evaluate(
            "[document.activeElement.closest('main') !== null,"
            " [...document.querySelectorAll('*')].indexOf(document.activeElement)]"
        )
        reached += inside and place > above
        above = place
    assert reached == wanted
