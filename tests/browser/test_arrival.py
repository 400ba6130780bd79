"""Where people land, and what they are told to do next."""

import re

import pytest
from playwright.sync_api import expect

from retrieval.evaluation.question_sets import save_case, set_named


def test_who_is_no_admin_lands_on_the_chat(browser):
    browser.open("/")
    browser.sign_in("bob")
    expect(browser.page).to_have_url(re.compile("/chat/$"))
    expect(browser.page.get_by_role("textbox", name="Question")).to_be_focused()


def test_an_admin_lands_on_the_overview_and_its_checklist_ticks_itself(browser, world):
    browser.open("/")
    browser.sign_in("alice")
    page = browser.page
    expect(page).to_have_url(re.compile("/overview/$"))
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    ticked = page.locator("[data-step][data-done=yes]")
    expect(ticked).to_have_count(2)
    expect(page.get_by_role("main").locator(".is-primary")).to_have_text("Ask a question")
    browser.open("/explorer/?q=how+many+minutes+does+draining+the+queue+take")
    browser.open("/overview/")
    expect(ticked).to_have_count(3)
    expect(page.get_by_role("main").locator(".is-primary")).to_have_text("Measure the results")
    questions = set_named("Release questions", actor=world.alice)
    save_case(questions, "how many minutes does draining the queue take", actor=world.alice)
    page.reload()
    page.get_by_role("main").locator(".is-primary").click()
    page.get_by_role("button", name="Measure").click()
    expect(page).to_have_url(re.compile("/runs/"))
    browser.open("/overview/")
    expect(page.locator("#guide")).to_have_count(0)
    expect(page.get_by_role("main").locator(".is-primary")).to_have_text("Ask a question")


@pytest.mark.parametrize("user", ["alice", "bob"])
def test_an_address_that_was_shared_before_still_opens_the_explorer(start, user):
    browser = start(user=user)
    browser.open("/?q=rollback")
    expect(browser.page.locator("[data-hits]")).to_be_visible()
