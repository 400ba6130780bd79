"""From imported questions and a sweep to a live version and back, in a real browser."""

import json

import pytest
from playwright.sync_api import expect

from corecube.models import AuditEvent
from retrieval.evaluation import runs, sweeps
from retrieval.models import Chunk, PresetVersion
from tests.questions import HELD_OUT, TUNING, tuning_questions

BY_AGE = {"blend.dense": 0.0, "blend.fulltext": 0.0, "blend.freshness": 1.0}


@pytest.fixture
def by_age(world, unhurried):
    """Let the live version order hits by their age alone, which no query asks for."""
    version = PresetVersion.objects.get(preset="corecube")
    version.values |= BY_AGE
    version.save()


def beir_files(judged):
    """Return the files of a BEIR folder: the questions, and the documents that answer them."""
    questions = [json.dumps({"_id": f"q{number}", "text": query}) for number, (query, _) in enumerate(judged)]
    names = [Chunk.objects.get(text__contains=word).document.external_id for _, word in judged]
    qrels = [f"q{number}\t{name}\t1" for number, name in enumerate(names)]
    texts = {"queries.jsonl": questions, "qrels.tsv": ["query-id\tcorpus-id\tscore", *qrels]}
    return [{"name": it, "mimeType": "text/plain", "buffer": "\n".join(texts[it]).encode()} for it in texts]


def import_set(alice, name, judged):
    """Make a question set of a BEIR folder on its page."""
    page = alice.page
    alice.open("/judgments/")
    page.locator("#set-name").fill(name)
    page.get_by_role("button", name="New set").click()
    page.get_by_label("Files", exact=True).set_input_files(beir_files(judged))
    page.get_by_role("button", name="Import", exact=True).click()
    expect(page.locator(".notice.is-good")).to_contain_text(f"Imported {len(judged)} new cases")


def live():
    return PresetVersion.objects.get(preset="corecube", status="live").number


def set_gate(alice, *, max_loss, on="tuning-questions"):
    page = alice.page
    alice.open(f"/judgments/{on}/")
    page.get_by_label("Allowed loss", exact=True).fill(max_loss)
    page.get_by_role("button", name="Set gate").click()
    expect(page.locator(".notice.is-good")).to_contain_text("The gate was set")


def measure_on_gates(alice):
    page = alice.page
    page.get_by_role("button", name="Measure on the gates").click()
    expect(page.locator("#gates progress").first).to_be_visible()
    runs.run_waiting()
    expect(page.locator("#gates progress")).to_have_count(0)


def test_a_sweep_finds_a_draft_that_passes_its_gate_is_promoted_and_rolled_back(alice, by_age):
    page = alice.page
    import_set(alice, "Train", (*TUNING, *HELD_OUT))
    import_set(alice, "Test", TUNING[:2])
    set_gate(alice, max_loss="0.01", on="test")
    alice.go("Inspect", "Sweeps")
    page.locator("select[name=set]").select_option("train")
    page.get_by_role("button", name="New sweep …").click()
    for number, (name, values) in enumerate((("blend.dense", "0, 0.6"), ("blend.fulltext", "0, 0.3"))):
        page.locator("select[name=name]").nth(number).select_option(name)
        page.get_by_label("Values or bounds").nth(number).fill(values)
    page.get_by_role("button", name="Start sweep").click()
    expect(page.get_by_role("progressbar")).to_be_visible()
    sweeps.run_waiting()
    expect(page.get_by_role("progressbar")).to_have_count(0)
    expect(page.locator(".run-verdict")).to_contain_text("Held-out difference: +")
    expect(page.locator("#chart-sweep-map.is-drawn")).to_be_visible()
    expect(page.locator("#chart-sweep-pareto")).to_be_visible()
    page.get_by_role("button", name="Save as draft").click()
    expect(page.locator(".draft")).to_contain_text("Sweep on Train: +")
    page.locator(".draft a.is-primary").click()
    measure_on_gates(alice)
    expect(page.locator("#gates")).to_contain_text("passed")
    page.get_by_role("button", name="Promote", exact=True).click()
    expect(page.locator(".notice.is-good")).to_contain_text("All searches now use version 2")
    assert live() == 2
    page.get_by_role("button", name="Roll back to version 1").click()
    expect(page.locator(".notice.is-good")).to_contain_text("all searches use version 1 again")
    assert live() == 1


def test_a_draft_that_loses_is_refused_until_a_reason_is_given(alice, by_age, world):
    page = alice.page
    tuning_questions(world)
    set_gate(alice, max_loss="0")
    alice.open("/presets/corecube/")
    field = page.locator("[name='floor.blend']")
    field.evaluate("it => it.closest('details').setAttribute('open', '')")
    field.fill("1")
    page.locator(".tunable-save button").click()
    page.locator(".draft a.is-primary").click()
    measure_on_gates(alice)
    expect(page.locator("#gates")).to_contain_text("below")
    expect(page.locator("#gates")).to_contain_text("queries worse")
    page.get_by_role("button", name="Promote anyway").click()
    assert live() == 1
    page.get_by_label("Reason to promote").fill("Nothing may be found today.")
    page.get_by_role("button", name="Promote anyway").click()
    expect(page.locator(".notice.is-good")).to_contain_text("All searches now use version 2")
    event = AuditEvent.objects.get(action="preset.promoted")
    assert event.details["override_reason"] == "Nothing may be found today."
