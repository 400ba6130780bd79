"""Connections in a real browser: from the choice of a kind to documents that can be found."""

import re

import pytest
from playwright.sync_api import expect


@pytest.fixture
def wiki(tmp_path):
    """Return a folder with a document."""
    folder = tmp_path / "wiki"
    folder.mkdir()
    (folder / "otters.md").write_text("# Otters\n\nThe otter in the harbour is called Berthold.\n")
    return folder


def fill_in(browser, folder):
    browser.go("Data", "Connections")
    page = browser.page
    page.get_by_role("link", name="New connection").click()
    page.get_by_role("link", name=re.compile("^Folder")).click()
    page.get_by_label("Name", exact=True).fill("Wiki")
    page.get_by_label("Path", exact=True).fill(str(folder))
    page.get_by_label("Compartment", exact=True).select_option("Engineering")


@pytest.mark.parametrize("javascript", [True, False])
def test_a_folder_is_connected_checked_and_synced(start, world, worker, wiki, javascript):
    browser = start(user="alice", java_script_enabled=javascript)
    page = browser.page
    browser.open("/explorer/")
    fill_in(browser, wiki)
    page.get_by_role("button", name="Test connection").click()
    expect(page.locator("#check")).to_contain_text("The source can be read")
    page.get_by_role("button", name="Add connection").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Wiki")
    job = page.locator("[data-job]").first
    expect(job).to_have_attribute("data-state", "queued")
    worker()
    while not javascript and job.get_attribute("data-state") in {"queued", "running"}:
        page.reload()
    expect(job).to_have_attribute("data-state", "done", timeout=30_000)
    expect(page.locator("#announcement")).to_contain_text("1 added" if javascript else "")
    browser.open("/explorer/?q=otter")
    expect(page.locator("[data-hits]")).to_contain_text("Berthold")


def test_a_folder_that_is_not_there_is_told_before_anything_is_saved(alice, tmp_path):
    alice.watch.expect(422)
    alice.open("/explorer/")
    fill_in(alice, tmp_path / "nowhere")
    alice.page.get_by_role("button", name="Add connection").click()
    expect(alice.page.locator("#check, [role=alert]").first).to_be_visible()
    alice.open("/connections/")
    expect(alice.page.get_by_role("link", name="Wiki")).to_have_count(0)
