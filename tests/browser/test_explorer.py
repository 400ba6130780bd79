"""The Query Explorer in a real browser."""

import re

import pytest
from playwright.sync_api import expect

from corecube.models import Connection
from corecube.scope import Sensitivity
from retrieval.models import Impression
from tests.browser.axe import findings
from tests.race import until


@pytest.fixture
def searched(alice):
    """Return a window in which Alice has searched."""
    alice.open("/explorer/")
    alice.page.evaluate("window.sameDocument = true")
    alice.ask("rollback")
    alice.page.locator("[data-hits]").wait_for()
    return alice


def test_somebody_signs_in_asks_and_signs_out(browser):
    browser.sign_in("bob")
    browser.open("/explorer/")
    browser.ask("rollback")
    browser.page.locator("[data-hits]").wait_for()
    browser.sign_out()
    expect(browser.page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_a_search_replaces_only_the_results(searched):
    assert searched.page.evaluate("window.sameDocument")
    expect(searched.page).to_have_url(re.compile("q=rollback"))
    expect(searched.page.locator("#announcement")).to_contain_text("hit")


def test_the_keyboard_walks_through_the_hits(searched):
    searched.page.evaluate("document.activeElement.blur()")
    searched.expect_ledgers("1")
    searched.press("j", "j")
    searched.expect_ledgers("3")
    searched.press("k")
    searched.expect_ledgers("2")
    expect(searched.page).to_have_url(re.compile("hit=2"))
    expect(searched.page.locator("[data-switch=hit][data-name='2']")).to_be_focused()
    searched.press("ArrowDown")
    searched.expect_ledgers("3")
    searched.press("/")
    expect(searched.page.locator("#query")).to_be_focused()
    searched.press("j")
    searched.expect_ledgers("3")


def test_a_shared_address_opens_what_was_open(searched):
    searched.page.locator(".tabs").get_by_role("link", name="Trace", exact=True).click()
    shown = searched.page.locator("[data-panel=tab]:visible")
    expect(shown).to_have_attribute("data-name", "trace")
    searched.page.reload()
    expect(shown).to_have_count(1)
    expect(shown).to_have_attribute("data-name", "trace")


def test_a_connection_is_excluded_and_the_open_tab_stays(searched):
    page = searched.page
    page.locator("[data-switch=tab][data-name=context]").click()
    expect(page.locator(".passages")).to_contain_text("Runbooks")
    before = page.locator(".passages").inner_text()
    page.locator(".sources-open").click()
    page.locator("a.source[title*=Engineering]").first.click()
    expect(page.locator("a.source.is-off")).to_have_count(1)
    # The list stays open for the next one, and its button says what is left.
    expect(page.locator("a.source.is-off")).to_be_visible()
    expect(page.locator("a.source.is-off")).to_be_focused()
    expect(page.locator(".sources-open")).to_have_text("2 of 3 connections")
    expect(page).to_have_url(re.compile("without="))
    expect(page).to_have_url(re.compile("tab=context"))
    expect(page.locator(".passages")).to_be_visible()
    expect(page.locator(".passages")).not_to_have_text(before)
    page.go_back()
    expect(page.locator("a.source.is-off")).to_have_count(0)


def test_a_stage_opens_and_closes(searched):
    cell, panel = "[data-switch=stage][data-name=fuse]", "[data-panel=stage]:visible"
    expect(searched.page.locator(cell)).to_be_hidden()
    searched.page.locator("[data-switch=part][data-name=fuse]").click()
    searched.page.locator(cell).click()
    expect(searched.page.locator(panel)).to_contain_text("fusion.rank_constant")
    searched.page.locator(cell).click()
    expect(searched.page.locator(panel)).to_have_count(0)
    expect(searched.page).not_to_have_url(re.compile("stage="))
    searched.page.locator("[data-switch=part][data-name=retrieve]").click()
    expect(searched.page.locator(cell)).to_be_hidden()
    expect(searched.page.locator("[data-switch=stage][data-name=dense]")).to_be_visible()
    searched.page.locator("[data-switch=part][data-name=retrieve]").click()
    expect(searched.page.locator("[data-panel=part]:visible")).to_have_count(0)
    expect(searched.page).not_to_have_url(re.compile("part="))


def test_another_person_sees_another_scope(searched):
    searched.page.get_by_label("Run as").select_option("bob")
    expect(searched.page).to_have_url(re.compile("as=bob"))
    searched.page.locator(".sources-open").click()
    expect(searched.page.locator(".source.is-closed").first).to_be_visible()


def test_an_error_is_shown_in_the_place_of_the_results(searched):
    searched.watch.expect(400, 422)
    searched.ask("   ")
    expect(searched.page.locator("#results [role=alert]")).to_contain_text("The query is empty.")
    assert searched.page.evaluate("window.sameDocument")


def test_a_citation_opens_the_document_at_its_passage(searched):
    page = searched.page
    page.get_by_role("link", name="Answer", exact=True).click()
    expect(page).to_have_url(re.compile("tab=answer"))
    with page.expect_request(re.compile("/use/")):
        page.locator(".citation:visible").first.click()
    expect(page.locator(":target.chunk")).to_be_visible()
    until(Impression.objects.filter(opened=True).exists)
    assert page.locator(":target").get_attribute("id").startswith("chunk-")


def test_the_answer_comes_after_its_page_and_is_announced(alice):
    page = alice.page
    alice.open("/explorer/?q=how+many+minutes+does+draining+the+queue+take&tab=answer")
    expect(page.locator("#answer .citation").first).to_be_visible()
    expect(page.locator("#answer[hx-get]")).to_have_count(0)
    expect(page.locator("#announcement")).to_have_text("Answer ready.")
    page.locator(".tabs").get_by_role("link", name="Hits").click()
    page.get_by_role("link", name="Answer", exact=True).click()
    expect(page.locator("#answer .citation").first).to_be_visible()


def test_without_javascript_a_link_shows_the_answer(start):
    browser = start(java_script_enabled=False)
    browser.sign_in("alice")
    browser.open("/explorer/?q=rollback&tab=answer")
    expect(browser.page.get_by_text("Writing the answer")).to_be_hidden()
    browser.page.get_by_role("link", name="Show the answer").click()
    expect(browser.page.locator("#answer .citation").first).to_be_visible()


def test_a_ledger_opens_below_its_hit_on_a_phone(start):
    browser = start(user="alice", width=390)
    browser.open("/explorer/?q=rollback")
    browser.expect_ledgers()
    browser.page.locator("[data-switch=hit][data-name='2']").click()
    browser.expect_ledgers("2")
    ledger = browser.page.locator("#ledger-2").bounding_box()
    below = browser.page.locator("[data-hit-card]").nth(2).bounding_box()
    assert ledger["y"] + ledger["height"] <= below["y"] + 1
    assert not browser.scrolls_sideways()


def test_the_chosen_theme_is_kept(start):
    browser = start(user="bob")
    browser.open("/explorer/")
    browser.page.locator(".account-open").click()
    browser.page.get_by_role("button", name="Dark theme").click()
    browser.page.reload()
    browser.page.locator(".account-open").click()
    expect(browser.page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(browser.page.get_by_role("button", name="Dark theme")).to_have_attribute("aria-pressed", "true")
    browser.page.get_by_role("button", name="System theme").click()
    expect(browser.page.locator("html")).not_to_have_attribute("data-theme", re.compile(".*"))


def test_everything_can_be_read_without_javascript(start):
    browser = start(java_script_enabled=False)
    browser.sign_in("alice")
    browser.open("/explorer/")
    browser.ask("rollback")
    browser.page.locator("[data-hits]").wait_for()
    browser.page.locator("[data-switch=hit][data-name='2']").click()
    browser.expect_ledgers("2")
    browser.page.locator("[data-switch=tab][data-name=context]").click()
    expect(browser.page.locator(".passages:visible")).to_have_count(1)
    browser.page.locator(".sources-open").click()
    browser.page.locator("a.source[title*=Engineering]").first.click()
    expect(browser.page.locator("a.source.is-off")).to_have_count(1)


def test_another_preset_offers_its_own_modes(searched):
    page = searched.page
    page.locator(".options-open").click()
    page.locator("#mode").select_option("fulltext")
    expect(page).to_have_url(re.compile("mode=fulltext"))
    page.locator("[name=preset]").select_option("helix")
    expect(page.locator("#mode")).to_have_value("bm25")
    expect(page.locator("#mode option")).to_have_text(["Hybrid", "Vector only", "BM25 only"])
    assert page.evaluate("window.sameDocument")


def test_what_an_open_stage_dropped_can_be_read(alice):
    alice.open("/explorer/?q=rollback&preset=consolidated&part=rank&stage=floors")
    expect(alice.page.locator(".funnel-cell[aria-expanded=true] .strip-dropped")).to_be_visible()
    assert findings(alice.page) == []


def test_the_strip_folds_the_stages_and_counts_chunks(searched):
    page = searched.page
    parts = page.locator("[data-switch=part]")
    expect(parts.locator(".strip-label")).to_have_text(["Retrieve", "Fuse", "Rank", "Pack", "Verdict"])
    # Two legs find the same chunk twice.
    for name, unit in (("retrieve", "hit"), ("fuse", "chunk"), ("rank", "chunk"), ("pack", "chunk")):
        expect(page.locator(f"[data-switch=part][data-name={name}] .strip-count")).to_contain_text(unit)
    page.locator("[data-switch=part][data-name=verdict]").click()
    expect(page.locator(".signals")).to_be_visible()
    expect(page).to_have_url(re.compile("part=verdict"))
    # What the budget leaves out is no fault.
    red = page.locator(".strip").evaluate(
        "it => [...it.querySelectorAll('*')].filter((one) => getComputedStyle(one).color === 'rgb(201, 42, 42)').length"
    )
    assert red == 0


@pytest.mark.parametrize("user", ["alice", "bob"])
def test_the_tabs_begin_high_on_the_page(start, user):
    browser = start(user=user)
    browser.open("/explorer/?q=rollback")
    assert browser.page.locator(".tabs").bounding_box()["y"] < 220
    row = [
        browser.page.locator(f"#ask {it}").bounding_box() for it in ("#query", "#preset", ".sources-open", ".ask-run")
    ]
    assert max(it["y"] for it in row) < min(it["y"] + it["height"] for it in row)


def test_sources_are_filtered_by_name(start, world):
    browser = start(user="alice")
    page = browser.page
    for number in range(4):
        Connection.objects.create(
            slug=f"s{number}",
            name=f"Shelf {number}",
            kind="upload",
            compartment=world.runbooks.compartment,
            sensitivity=Sensitivity.PUBLIC,
        )
    browser.open("/explorer/?q=rollback")
    page.locator(".sources-open").click()
    page.get_by_label("Filter connections").fill("shelf 2")
    expect(page.locator(".source:visible")).to_have_count(1)
    browser.press("Enter")
    expect(page).to_have_url(re.compile(r"q=rollback$"))
    page.locator("a.source:visible").click()
    expect(page).to_have_url(re.compile("without=s2"))
    expect(page.get_by_label("Filter connections")).to_have_value("shelf 2")
    expect(page.locator(".source:visible")).to_have_count(1)
    browser.press("Escape")
    expect(page.locator(".sources-body")).to_be_hidden()
    expect(page.locator(".sources-open")).to_be_focused()


def test_a_number_says_how_it_is_computed_to_mouse_and_keyboard(searched):
    page, tip = searched.page, searched.page.get_by_role("tooltip")
    page.locator(".hit-total").nth(1).hover()
    expect(tip).to_contain_text("Weighted sum")
    page.locator(".hit-total").nth(1).click()
    searched.expect_ledgers("2")
    page.mouse.move(0, 0)
    expect(tip).to_be_hidden()
    ledger = page.locator(".ledger:visible")
    term = ledger.locator(".term", has_text="Fusion")
    ledger.locator(".term").first.focus()
    searched.press("Shift+Tab", "Tab")
    expect(tip).to_contain_text("eight")
    searched.press("Escape")
    expect(tip).to_be_hidden()
    term.hover()
    expect(tip).to_contain_text("RRF")
