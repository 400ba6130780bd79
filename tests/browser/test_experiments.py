"""An experiment from its start to its report, in a real browser."""

import pytest
from playwright.sync_api import expect

from retrieval.models import Impression, PresetVersion, SearchRecord
from tests.experiments import BY_AGE
from tests.race import until

pytestmark = pytest.mark.usefixtures("unhurried")


def begin(alice):
    """Let Alice start an experiment on its page, without an end at first."""
    live = PresetVersion.objects.get(preset="corecube")
    PresetVersion.objects.create(preset="corecube", number=2, values=live.values | BY_AGE)
    page = alice.page
    alice.open("/experiments/")
    page.get_by_label("Name", exact=True).fill("Age or blend")
    page.get_by_label("Side A").select_option("corecube:1")
    page.get_by_label("Side B").select_option("corecube:2")
    page.get_by_label("Share of questions, percent").fill("100")
    alice.watch.expect(422)
    page.get_by_role("button", name="Start experiment").click()
    expect(page.get_by_role("alert")).to_contain_text("Set an end")
    page.get_by_label("Number of questions").fill("10")
    page.get_by_role("button", name="Start experiment").click()
    expect(page.locator(".notice.is-good")).to_contain_text("The experiment was started")


def test_real_use_of_interleaved_hits_is_the_report_of_an_experiment(alice, start):
    begin(alice)
    bob = start(user="bob")
    bob.open("/explorer/")
    bob.ask("roll back the staging database")
    bob.page.locator(".hit-open").first.click()
    until(Impression.objects.filter(opened=True).exists)
    record = SearchRecord.objects.get(experiment__isnull=False)
    side = record.trace["interleaving"]["teams"][0][2]

    page = alice.page
    alice.open(f"/log/{record.pk}/")
    expect(page.locator(".record-hit").first).to_contain_text(f"side {side}")
    expect(page.locator(".record-badges")).to_contain_text("experiment")
    alice.go("Inspect", "Experiments")
    # Questions, not counted, with credit, and wins of A and B.
    report = page.get_by_role("region", name="Report of Age or blend").locator("tbody td")
    for place, figure in enumerate(("1", "0", "1", str(int(side == "A")), str(int(side == "B")), "0")):
        expect(report.nth(place)).to_have_text(figure)
    expect(page.locator(".run-verdict")).to_contain_text("No winner")
    page.get_by_role("button", name="Stop experiment").click()
    expect(page.locator(".notice.is-good")).to_contain_text("The experiment was stopped")
    bob.open("/explorer/?q=roll+back+staging")
    expect(bob.page.locator(".hit").first).to_be_visible()
    assert SearchRecord.objects.filter(experiment__isnull=False).count() == 1
