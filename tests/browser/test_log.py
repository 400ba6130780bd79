"""The query log in a real browser: from a logged search to what it would find now."""

import re

from playwright.sync_api import expect

from retrieval.ingest.sync import sync_connection


def test_a_logged_search_is_opened_then_and_now(start, world):
    bob, alice = start(user="bob"), start(user="alice")
    bob.open("/explorer/?q=rollback")
    (world.root / "runbooks" / "queues.txt").write_text("A rollback rolls back. Rollback, rollback, rollback.")
    sync_connection(world.runbooks)
    page = alice.page
    alice.open("/log/")
    expect(page.get_by_role("region", name="Searches").locator("tbody tr")).to_have_count(1)
    page.get_by_role("link", name="rollback").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("rollback")
    expect(page.locator("main")).to_contain_text("bob")
    page.get_by_role("link", name="Compare with current").click()
    expect(page).to_have_url(re.compile("/compare/"))
    expect(page.get_by_role("region", name="Comparison")).to_be_visible()
    expect(page.locator("#results")).to_contain_text("Queues")
    page.go_back()
    page.get_by_role("link", name="Open in the Explorer").click()
    expect(page).to_have_url(re.compile("as=bob"))
    expect(page.locator("#query")).to_have_value("rollback")


def test_a_slash_does_nothing_where_there_is_no_query(alice):
    alice.open("/explorer/?q=rollback")
    alice.open("/log/")
    alice.page.get_by_role("link", name="rollback").click()
    alice.page.get_by_role("heading", name="Stages").wait_for()
    alice.press("/")
    # Errors are told with the next answer of the page; the window's watch fails the test for any.
    expect(alice.page.get_by_role("heading", level=1)).to_have_text("rollback")


def test_the_log_is_filtered_without_leaving_the_page(alice):
    page = alice.page
    for query in ("rollback", "quokka"):
        alice.open(f"/explorer/?q={query}")
    alice.open("/log/")
    rows = page.get_by_role("region", name="Searches").locator("tbody tr")
    expect(rows).to_have_count(2)
    page.get_by_label("Text of the query").fill("quok")
    expect(rows).to_have_count(1)
    expect(page).to_have_url(re.compile("q=quok"))
    page.reload()
    expect(rows).to_have_count(1)
