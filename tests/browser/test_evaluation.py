"""Judging in place, in a real browser."""

import re

import pytest
from playwright.sync_api import expect

from retrieval.evaluation.question_sets import save_case, set_named
from retrieval.evaluation.runs import run_waiting
from retrieval.models import EvaluationRun, Judgment
from tests.questions import TANGERINE, judge_passage
from tests.race import beside


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
    expect(page.locator("h1")).to_contain_text("General search, shipped defaults and Agent search, shipped defaults")
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
    expect(passages.first).to_be_focused()
    number = passages.count()
    for graded in range(number):
        expect(page.locator("[data-graded]")).to_have_count(graded)
        expect(page.locator("[data-pooled]:not([data-graded])").first).to_be_focused()
        alice.press("3" if graded == 0 else "0")
    expect(page.locator("[data-graded]")).to_have_count(number)
    expect(page.locator("#begun")).to_have_text("1 with grades from you")
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


@pytest.fixture
def answered(alice, world):
    """Measure three runs with answers of a judged question whose answer is known, on the pages."""
    page, address = alice.page, "/judgments/release-questions/"
    save_case(set_named("Release questions", actor=world.alice), TANGERINE, actor=world.alice)
    judge_passage(world, TANGERINE, TANGERINE, 3)
    alice.open(address)
    page.locator(".set-expected summary").click()
    page.get_by_role("textbox", name=f"Expected answer to {TANGERINE}").fill("no such | tangerine")
    page.get_by_role("button", name="Save the expected answer").click()
    expect(page.locator(".set-expected summary")).to_contain_text("no such | tangerine")
    for preset in ("corecube", "helix", "corecube"):
        alice.open(address)
        page.locator("[name=configuration]").select_option(preset)
        page.get_by_label("Answers", exact=True).check()
        page.get_by_role("button", name="Measure").click()
        beside(run_waiting)
        # Sooner than the page looks by itself.
        page.reload()
        expect(page.get_by_role("progressbar")).to_have_count(0)
    return alice


def test_the_answers_of_a_run_are_measured(answered):
    shown = answered.page.get_by_role("region", name="Answers")
    expect(shown.locator(".stat").filter(has_text="Right")).to_contain_text("1.000")
    expect(answered.page.get_by_role("region", name="Result of each case")).to_contain_text("right")
    assert EvaluationRun.objects.filter(has_answers=True, status="done").count() == 3


def test_a_query_of_three_runs_is_looked_into(answered):
    page = answered.page
    # The newest run finds less, so that there is a query to look into.
    case = EvaluationRun.objects.latest("created_at").results.get()
    case.measures |= {"ndcg": 0.25}
    case.save()
    answered.open("/judgments/release-questions/")
    page.get_by_role("radio").last.check()
    for box in page.locator("[name=b]").all()[:2]:
        box.check()
    page.get_by_role("button", name="Compare", exact=True).click()
    expect(page.locator("h1")).to_have_text("3 runs of Release questions")
    expect(page.get_by_role("region", name="Measures of the runs")).to_contain_text("Right")
    table = page.get_by_role("region", name="nDCG of each query, widest spread first")
    table.get_by_role("link", name="0.250").click()
    compared = page.locator("#compared-query")
    expect(compared).to_contain_text("Agreement by stage")
    expect(compared.locator(".main-svg").first).to_be_visible()
    expect(page).to_have_url(re.compile("/runs/compare/"))
    expect(page).to_have_title(re.compile("3 runs of Release questions"))
