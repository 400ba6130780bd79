"""Which model judges: stored, replaced, reset, and left alone when it cannot be used."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from django.db import IntegrityError, connection, transaction

from corecube.models import AuditEvent
from retrieval.models import Calibration, SearchRecord
from retrieval.ranking.answerability.logistic import LogisticModel
from retrieval.ranking.answerability.model import AnswerabilityModel
from retrieval.search import calibrations, runtime
from retrieval.search.request import SearchRequest
from retrieval.search.service import search
from tests.fakes import HashEncoder

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("unhurried")]

SURE = LogisticModel(9.0, {}, {}, {})
MODEL = AnswerabilityModel(SURE, SURE, is_calibrated=True, score_type="blend")
WORDY = {"intercept": 0, "weights": {"cosine_lead": "x"}, "means": {"cosine_lead": 0}, "scales": {"cosine_lead": 1}}
FIGURES = {"auroc": 0.9, "ece": 0.03, "answerable": 40, "not_answerable": 30, "bins": []}


def stored(model=MODEL, preset="corecube", encoder=None, actor=None):
    return calibrations.store(
        model, preset=preset, encoder=encoder or HashEncoder(), figures=FIGURES, source="ours.jsonl", actor=actor
    )


def test_a_search_is_judged_by_the_stored_model_at_once(world):
    def ask():
        return search(SearchRequest(text="rollback"), principal=world.principal("bob")).state.answerability

    before = ask()
    stored()
    after = ask()
    assert (before.is_calibrated, after.is_calibrated) == (False, True)
    # Log-odds 9 whatever the signals: 1 / (1 + e^-9).
    assert after.confidence == pytest.approx(0.99988, abs=1e-5)
    assert calibrations.reset("corecube", actor=None)
    assert ask() == before


def test_the_trace_keeps_the_verdict_but_not_its_sentence(world):
    outcome = search(SearchRequest(text="zanzibar passphrase"), principal=world.principal("bob"))
    kept = SearchRecord.objects.get(pk=outcome.id).trace["answerability"]
    assert kept["verdict"] == "not_answerable"
    assert kept["reason"] == "unknown_terms"
    assert kept["confidence"] == pytest.approx(outcome.state.answerability.confidence)
    assert "zanzibar" in outcome.state.answerability.explanation
    assert "explanation" not in kept


def test_another_encoders_calibration_is_not_used():
    other = HashEncoder()
    other.weights = "other"
    stored(encoder=other)
    assert calibrations.active_models(HashEncoder()) == {}
    assert calibrations.active_models(other) == {"corecube": MODEL}


def test_another_presets_calibration_is_not_used(world):
    stored(preset="elsewhere")
    outcome = search(SearchRequest(text="rollback"), principal=world.principal("bob"))
    assert not outcome.state.answerability.is_calibrated


def test_a_new_calibration_takes_the_place_of_the_old_one():
    first, second = stored(), stored(replace(MODEL, score_type=""))
    first.refresh_from_db()
    assert (first.is_active, second.is_active) == (False, True)
    assert calibrations.active_calibration("corecube") == second


def test_only_one_can_be_active():
    stored()
    with pytest.raises(IntegrityError), transaction.atomic():
        Calibration.objects.create(preset="corecube", encoder="x", coefficients={}, figures={}, source="x")


def test_storing_and_resetting_are_audited(people):
    stored(actor=people["alice"])
    assert calibrations.reset("corecube", actor=people["alice"])
    assert not calibrations.reset("corecube", actor=people["alice"])
    events = list(AuditEvent.objects.filter(subject="corecube").order_by("id").values_list("action", "actor__username"))
    assert events == [("calibration.stored", "alice"), ("calibration.reset", "alice")]
    assert AuditEvent.objects.get(action="calibration.stored").details["auroc"] == 0.9


@pytest.mark.parametrize(
    "coefficients",
    [
        {},
        [],
        "x",
        {"with_sentences": {"intercept": "x", "weights": {}}},
        {"with_sentences": WORDY, "without_sentences": WORDY},
    ],
)
def test_a_model_that_cannot_be_read_leaves_the_shipped_one(world, caplog, coefficients):
    row = stored()
    Calibration.objects.filter(pk=row.pk).update(coefficients=coefficients)
    outcome = search(SearchRequest(text="rollback"), principal=world.principal("bob"))
    assert not outcome.state.answerability.is_calibrated
    assert "calibration.unreadable" in caplog.text


def test_resources_hand_the_calibrations_to_the_stages(world):
    stored()
    assert runtime.resources().calibrations == {"corecube": MODEL}


def test_a_source_with_a_long_or_odd_name_is_kept_as_far_as_it_fits():
    row = calibrations.store(
        MODEL, preset="corecube", encoder=HashEncoder(), figures=FIGURES, source="\udcff" + "x" * 250, actor=None
    )
    row.refresh_from_db()
    assert row.source == "?" + "x" * 199


@pytest.mark.django_db(transaction=True)
def test_two_that_are_stored_at_once_follow_each_other():
    together = threading.Barrier(2)

    def store_one(_):
        together.wait(10)
        try:
            return stored().pk
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        made = list(pool.map(store_one, range(2)))
    assert Calibration.objects.filter(pk__in=made).count() == 2
    assert Calibration.objects.filter(is_active=True).count() == 1
