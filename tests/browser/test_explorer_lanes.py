"""Lanes and comparisons in a real browser."""

import json
import re

from playwright.sync_api import expect


def test_three_lanes_stand_beside_each_other(alice):
    page = alice.page
    alice.open("/explorer/?q=rollback+staging")
    page.get_by_role("link", name="Lanes").click()
    expect(page).to_have_url(re.compile("tab=lanes"))
    lanes = page.locator(".lane:visible")
    expect(lanes.locator(".lane-title")).to_have_text(
        [re.compile("Vector"), re.compile("Hybrid"), re.compile("Full text")]
    )
    expect(lanes.nth(1).locator("li").first).to_contain_text("Rolling back")
    expect(page.locator(".lane-gap svg")).to_have_count(2)
    expect(page.locator(".lanes-figures")).to_contain_text("Jaccard")
    page.get_by_role("link", name="Table", exact=True).click()
    expect(page.get_by_role("region", name="Ranks as a table")).to_be_visible()
    expect(lanes).to_have_count(0)
    page.reload()
    expect(page.get_by_role("region", name="Ranks as a table")).to_be_visible()


def test_narrow_cards_hold_their_connection_and_places(alice):
    page = alice.page
    page.set_viewport_size({"width": 1024, "height": 800})
    alice.open("/explorer/?q=rollback+staging&tab=lanes")
    cards = page.locator(".lane-card", has=page.locator(".lane-source"))
    found = cards.evaluate_all(
        """(cards) => {
          const end = (it) => it.getBoundingClientRect().right;
          const place = (card) => card.querySelector(".lane-place:last-child");
          return cards.map((card) => [end(card) - end(place(card)), card.querySelector(".lane-source").clientWidth]);
        }"""
    )
    assert found
    assert all(margin > 0 and width > 60 for margin, width in found), found


def test_other_views_are_of_the_same_search(alice):
    page = alice.page
    tabs = page.get_by_role("navigation", name="Views of this search")
    alice.open("/explorer/?q=rollback+staging")
    first = tabs.get_attribute("hx-headers")  # The search's id.
    for name in ("Lanes", "Document trace", "Answer", "Scores", "Trace"):
        tab = tabs.get_by_role("link", name=name, exact=True)
        tab.click()
        expect(tab).to_have_attribute("aria-current", "true")
        expect(tabs).to_have_attribute("hx-headers", first)
    assert json.loads(first)["CoreCube-Trace"] in page.locator(".trace-id").inner_text()
    page.get_by_role("button", name="Run").click()
    expect(tabs).not_to_have_attribute("hx-headers", first)


def test_two_runs_are_compared(alice):
    page = alice.page
    alice.open("/compare/")
    page.get_by_label("Side B").select_option(index=1)
    alice.ask("rollback staging")
    expect(page.get_by_role("region", name="Comparison")).to_contain_text("Jaccard")
    expect(page).to_have_url(re.compile("q=rollback"))
    page.get_by_role("link", name="Swap sides").click()
    expect(page.get_by_role("region", name="Comparison")).to_contain_text("Jaccard")
