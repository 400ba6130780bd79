"""A language model is ready once it answered and until it fails; saving, checks and answers find out."""

from datetime import timedelta

import pytest
from django.utils import timezone

from corecube.secrets import Purpose, seal
from retrieval.errors import AnswerRateLimitedError, AnswerUnavailableError
from retrieval.llm import clients
from retrieval.llm.clients import stored_models
from retrieval.llm.reachability import ModelState, check_due, note, status_of, status_words, try_saved
from retrieval.models import LanguageModel
from retrieval.operations.health import _failing_models, _optional
from tests.fake_llm import FakeLLM, Fault

SECRET = "sk-hush-hush"
NOWHERE = "http://127.0.0.1:9/v1"


@pytest.fixture
def llm():
    with FakeLLM() as fake:
        fake.says("ready")
        yield fake


@pytest.fixture
def model(db, llm):
    return LanguageModel.objects.create(
        slug="ours", name="Ours", base_url=llm.url, model="fake-small", silence_seconds=2, timeout_seconds=5
    )


def state(model):
    model.refresh_from_db()
    return status_of(model).state


def age(model, **by):
    """Move what is known of a model into the past."""
    then = timezone.now() - timedelta(**by)
    LanguageModel.objects.filter(pk=model.pk).update(checked_at=then)


def test_a_model_that_nobody_asked_is_not_ready(model):
    assert state(model) is ModelState.UNTRIED
    assert _optional(_failing_models).state == "degraded"


def test_a_trial_makes_it_ready(model):
    assert try_saved(model).ok
    assert state(model) is ModelState.READY
    assert _optional(_failing_models).state == "ok"


@pytest.mark.parametrize("fault", [Fault.ERROR, Fault.UNAUTHORIZED, Fault.NO_MODEL, Fault.HANGS_UP, Fault.NOT_HTTP])
def test_a_failure_after_it_makes_it_unready_with_its_age(model, llm, fault):
    try_saved(model)
    llm.fault = fault
    assert not try_saved(model).ok
    assert state(model) is ModelState.FAILING
    first = status_of(model).since
    assert try_saved(model).problem == status_of(model).problem
    model.refresh_from_db()
    assert status_of(model).since == first
    assert status_words(status_of(model), first + timedelta(minutes=12)).startswith("has not answered for 12 minutes: ")
    assert _optional(_failing_models).state == "degraded"
    llm.fault = Fault.NONE
    try_saved(model)
    assert state(model) is ModelState.READY


def test_a_busy_service_says_nothing_of_the_model(model, llm):
    try_saved(model)
    llm.fault = Fault.RATE_LIMITED
    assert not try_saved(model).ok
    assert state(model) is ModelState.READY
    note(model.pk, AnswerRateLimitedError("Busy."))
    assert state(model) is ModelState.READY


def test_a_service_that_never_answers_is_waited_for_only_so_long(model, llm):
    model.timeout_seconds = model.silence_seconds = 600
    model.save()
    llm.fault, llm.first_seconds = Fault.SLOW_HEADERS, 30
    assert "did not answer in time" in try_saved(model, in_seconds=0.5).problem
    assert state(model) is ModelState.FAILING


def test_what_is_stored_of_a_failure_holds_no_key(model, llm):
    model.sealed_key = seal({clients.KEY: SECRET}, Purpose.LANGUAGE_MODEL)
    model.save()
    llm.fault = Fault.UNAUTHORIZED
    try_saved(model)
    model.refresh_from_db()
    assert model.failure
    assert SECRET not in model.failure


def test_a_breaker_that_is_open_here_is_no_ready_model(model, llm):
    try_saved(model)
    client = clients.client_of(model)
    for _ in range(3):
        with pytest.raises(AnswerUnavailableError), client._breaker.guarding():
            raise AnswerUnavailableError
    assert state(model) is ModelState.FAILING
    assert "failed several times" in status_of(model).problem


def test_another_address_has_to_prove_itself(model, world):
    from retrieval.admin.language_models import change_model

    try_saved(model)
    model.refresh_from_db()
    model.prompt_price = 3
    change_model(model, None, actor=world.alice)
    assert state(model) is ModelState.READY
    model.base_url = NOWHERE
    change_model(model, None, actor=world.alice)
    assert state(model) is ModelState.UNTRIED


def test_a_check_asks_a_ready_model_for_no_answer(model, llm):
    try_saved(model)
    asked = len(llm.requests)
    assert check_due() == 0
    age(model, hours=1)
    assert check_due() == 1
    assert len(llm.requests) == asked
    assert state(model) is ModelState.READY
    assert status_of(model).checked_at > timezone.now() - timedelta(minutes=1)


def test_a_check_finds_a_model_that_went_away_and_one_that_came_back(model, llm, settings):
    try_saved(model)
    LanguageModel.objects.update(base_url=NOWHERE)
    age(model, hours=1)
    assert check_due() == 1
    assert state(model) is ModelState.FAILING
    LanguageModel.objects.update(base_url=llm.url)
    age(model, hours=1)
    assert check_due() == 1
    assert state(model) is ModelState.READY
    settings.CORECUBE_LLM_CHECK_SECONDS = 0
    age(model, hours=1)
    assert check_due() == 0


def test_the_environments_model_is_tried_by_a_check(db, llm, settings):
    settings.CORECUBE_LLM_URL, settings.CORECUBE_LLM_MODEL = NOWHERE, "fake-small"
    (named,) = stored_models()
    assert status_of(named).state is ModelState.UNTRIED
    check_due()
    assert state(named) is ModelState.FAILING
    assert _optional(_failing_models).state == "degraded"
    settings.CORECUBE_LLM_URL = llm.url
    (named,) = stored_models()
    assert status_of(named).state is ModelState.UNTRIED
    check_due()
    assert state(named) is ModelState.READY


def test_a_model_that_is_off_is_neither_checked_nor_missed(model):
    LanguageModel.objects.update(is_enabled=False)
    assert check_due() == 0
    assert state(model) is ModelState.OFF
    assert _optional(_failing_models).state == "ok"


def test_an_answer_tells_whether_a_model_can_be_reached(world, llm, settings, client):
    settings.CORECUBE_LLM_URL, settings.CORECUBE_LLM_MODEL = llm.url, "fake-small"
    llm.says("Run deployctl [1].")

    def ask():
        body = {"model": "corecube", "messages": [{"role": "user", "content": "rollback staging"}]}
        headers = {"Authorization": f"Bearer {world.key('bob')}"}
        response = client.post("/v1/chat/completions", body, content_type="application/json", headers=headers)
        assert response.status_code == 200
        return response.json()["corecube"]

    assert ask()["provider"] == "environment"
    (model,) = stored_models()
    assert status_of(model).state is ModelState.READY
    llm.fault = Fault.UNAUTHORIZED
    assert "fell_back" in str(ask()["degraded"])
    assert state(model) is ModelState.FAILING
