"""Judging in place, in a real browser."""

import re

from playwright.sync_api import expect

from retrieval.evaluation.question_sets import save_case, set_named
from retrieval.evaluation.runs import run_waiting
from retrieval.models import Judgment


def grades():
    return sorted(Judgment.objects.values_list("grade", flat=True))


def test_hits_are_judged_by_keys_and_measured(alice):
    page = alice.page
    alice.open("/explorer/")
    alice.ask("rollback")
    page.locator("[data-hits]").wait_for()
    page.evaluate("document.activeElement.blur()")
    alice.press("3")
    first = page.get_by_role("group", name="Relevance of hit 1")
    expect(first.locator("[data-grade='3']")).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#measures")).to_contain_text("nDCG@10")
    alice.press("j", "0")
    second = page.get_by_role("group", name="Relevance of hit 2")
    expect(second.locator("[data-grade='0']")).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#measures")).to_contain_text("2 passages judged, 2 by you")
    assert grades() == [0, 3]
    alice.press("x")
    expect(second.locator("[aria-pressed=true]")).to_have_count(0)
    assert grades() == [3]
    page.reload()
    expect(first.locator("[data-grade='3']")).to_have_attribute("aria-pressed", "true")


def test_a_query_is_saved_as_a_case(alice):
    page = alice.page
    alice.open("/explorer/?q=rollback")
    page.locator("[data-grade='2']").first.click()
    expect(page.locator("#measures")).to_contain_text("1 passage judged")
    page.get_by_text("Save as case").click()
    page.locator(".case-form").get_by_role("button", name="Save").click()
    expect(page.locator(".notice.is-good")).to_be_visible()
    alice.open("/judgments/")
    page.get_by_role("link", name="Saved questions").click()
    expect(page.locator("main")).to_contain_text("rollback")


def test_two_presets_are_measured_and_compared(alice, world):
    page = alice.page
    save_case(set_named("Release questions", actor=world.alice), "rollback", actor=world.alice)
    for preset in ("corecube", "helix"):
        alice.open("/judgments/release-questions/")
        page.locator("[name=configuration]").select_option(preset)
        page.get_by_role("button", name="Measure").click()
        expect(page.get_by_role("progressbar")).to_be_visible()
        run_waiting()
        expect(page.get_by_role("progressbar")).to_have_count(0)
        expect(page.get_by_role("region", name="Result of each case")).to_contain_text("rollback")
    page.get_by_role("button", name="Compare", exact=True).click()
    expect(page.locator("h1")).to_contain_text("corecube and helix")
    expect(page.get_by_role("region", name="Measures of both runs")).to_contain_text("nDCG@10")


def test_hits_are_judged_without_javascript(start):
    browser = start(user="alice", java_script_enabled=False)
    browser.open("/explorer/?q=rollback")
    browser.page.locator("#judge-1-2").click()
    expect(browser.page).to_have_url(re.compile("q=rollback"))
    expect(browser.page.locator("#judge-1-2")).to_have_attribute("aria-pressed", "true")
    assert grades() == [2]


def test_a_set_is_judged_by_keys_question_by_question(alice, world):
    page = alice.page
    for query in ("draining the queue", "rolling back"):
        save_case(set_named("Release questions", actor=world.alice), query, actor=world.alice)
    alice.open("/judgments/release-questions/")
    page.get_by_role("link", name="Judge", exact=True).click()
    expect(page.locator("h1")).to_have_text("draining the queue")
    passages = page.locator("[data-pooled]")
    number = passages.count()
    for graded in range(number):
        expect(page.locator("[data-graded]")).to_have_count(graded)
        expect(page.locator("[data-pooled]:not([data-graded])").first).to_be_focused()
        alice.press("3" if graded == 0 else "0")
    expect(page.locator("[data-graded]")).to_have_count(number)
    assert grades() == [*[0] * (number - 1), 3]
    alice.press("n")
    expect(page.locator("h1")).to_have_text("rolling back")
    first = passages.first
    first.get_by_label("Explanation").fill("names the command 3")
    first.locator("[data-grade='2']").click()
    expect(page.locator("[data-graded]")).to_have_count(1)
    assert list(Judgment.objects.exclude(explanation="").values_list("grade", "explanation")) == [
        (2, "names the command 3")
    ]
