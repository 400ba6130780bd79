"""Language models in the console: list, trial, key, rules, deletion, usage."""

import json
import re
from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone
from django.utils.html import escape

from corecube.models import ApiKey, AuditEvent
from corecube.secrets import Purpose, seal, unseal
from explorer.wording import WORDS
from retrieval.llm import local_servers
from retrieval.llm.clients import KEY
from retrieval.llm.service_presets import PRESETS
from retrieval.models import LanguageModel, RoutingRule, Usage
from tests.fake_llm import FakeLLM, Fault

LIST = "/language-models/"
NEW = "/language-models/new/"
SECRET = "sk-hush-hush"


@pytest.fixture
def llm():
    with FakeLLM(key=SECRET) as fake:
        fake.says("ready")
        yield fake


@pytest.fixture
def alice(browse):
    return browse("alice")


@pytest.fixture
def form(llm):
    def fields(**more):
        return {
            "name": "Our model",
            "slug": "",
            "api": "openai",
            "base_url": llm.url,
            "api_version": "",
            "model": "fake-small",
            "api_key": SECRET,
            "context_tokens": "8192",
            "max_answer_tokens": "1024",
            "temperature": "0.1",
            "allows_system_prompt": "on",
            "min_temperature": "0",
            "max_temperature": "1",
            "timeout_seconds": "5",
            "silence_seconds": "2",
            "max_retries": "0",
            "prompt_price": "0.5",
            "completion_price": "1.5",
            "fallback": "",
            "is_default": "on",
            "is_enabled": "on",
            "do": "save",
            **more,
        }

    return fields


@pytest.fixture
def stored(world, llm):
    return LanguageModel.objects.create(
        slug="ours",
        name="Ours",
        base_url=llm.url,
        model="fake-small",
        is_default=True,
        max_retries=0,
        sealed_key=seal({KEY: SECRET}, Purpose.LANGUAGE_MODEL),
    )


def audited(action):
    return list(AuditEvent.objects.filter(action=action))


@pytest.mark.parametrize(
    "path", [LIST, NEW, "/language-models/ours/", "/language-models/ours/delete/", "/language-models/usage/"]
)
def test_pages_are_for_admins(stored, browse, path):
    assert browse("bob").get(path).status_code == 404
    assert browse("alice").get(path).status_code == 200


@pytest.mark.parametrize(
    "path", [NEW, "/language-models/ours/", "/language-models/ours/test/", "/language-models/routing/"]
)
def test_changes_are_for_admins(stored, browse, form, path):
    assert browse("bob").post(path, form()).status_code == 404
    assert LanguageModel.objects.count() == 1


def test_nothing_configured_says_what_happens_then(alice):
    page = alice.get(LIST).content.decode()
    assert "No language model yet" in page
    assert "No rules" in page


def test_the_rail_leads_there(alice):
    assert f'href="{LIST}"' in alice.get(LIST).content.decode()


def test_a_model_is_added_sealed_and_audited(alice, form):
    got = alice.post(NEW, form())
    assert (got.status_code, got.headers["Location"]) == (302, LIST)
    model = LanguageModel.objects.get()
    assert (model.slug, model.is_default, model.prompt_price) == ("our-model", True, Decimal("0.5"))
    assert SECRET not in model.sealed_key
    assert unseal(model.sealed_key, Purpose.LANGUAGE_MODEL) == {KEY: SECRET}
    (event,) = audited("language_model.created")
    assert SECRET not in json.dumps(event.details)
    for path in (LIST, "/language-models/our-model/"):
        page = alice.get(path).content.decode()
        assert "Our model" in page
        assert SECRET not in page


def test_a_trial_shows_times_and_models_and_saves_nothing(alice, form, htmx):
    got = alice.post(NEW, form(do="test"), headers=htmx)
    page = got.content.decode()
    assert got.status_code == 200
    assert "The model answers" in page
    assert "ready" in page
    assert "Time to first token" in page
    assert "fake-large" in page
    assert "<html" not in page
    assert SECRET not in page
    assert not LanguageModel.objects.exists()


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Fault.ERROR, "failed (status 500)"),
        (Fault.NO_MODEL, "does not exist there"),
        (Fault.GARBAGE, "is invalid"),
        (Fault.RATE_LIMITED, "has reached its rate limit"),
    ],
)
def test_a_trial_that_fails_says_why(alice, form, llm, fault, words):
    llm.fault = fault
    page = alice.post(NEW, form(do="test")).content.decode()
    assert "No answer" in page
    assert words in page


def test_a_wrong_key_is_said_and_not_repeated(alice, form):
    page = alice.post(NEW, form(do="test", api_key="sk-wrong-one")).content.decode()
    assert "refused the API key" in page
    assert "sk-wrong-one" not in page


def test_a_stored_model_is_tried_with_its_stored_key(alice, form, stored):
    page = alice.post("/language-models/ours/", form(do="test", slug="ours", api_key="")).content.decode()
    assert "The model answers" in page


@pytest.mark.parametrize("do", ["save", "test"])
def test_the_key_does_not_follow_to_another_host(alice, form, stored, do):
    with FakeLLM() as elsewhere:
        got = alice.post("/language-models/ours/", form(do=do, slug="ours", api_key="", base_url=elsewhere.url))
        assert got.status_code == 422
        assert "now has another host" in got.content.decode()
        assert elsewhere.headers == []
        assert elsewhere.connections == 0
    stored.refresh_from_db()
    assert stored.base_url != elsewhere.url


def test_another_path_of_the_same_host_keeps_the_key(alice, form, stored, llm):
    got = alice.post("/language-models/ours/", form(slug="ours", api_key="", base_url=f"{llm.url}/deep"))
    assert got.status_code == 302
    stored.refresh_from_db()
    assert unseal(stored.sealed_key, Purpose.LANGUAGE_MODEL) == {KEY: SECRET}


def test_a_key_is_removed_when_asked(alice, form, stored):
    alice.post("/language-models/ours/", form(slug="ours", api_key="", drop_key="on"))
    stored.refresh_from_db()
    assert stored.sealed_key == ""
    (event,) = audited("language_model.changed")
    assert "api_key" in event.details["changed"]


def test_one_default_takes_the_place_of_the_other(alice, form, stored):
    alice.post(NEW, form())
    assert list(LanguageModel.objects.filter(is_default=True).values_list("slug", flat=True)) == ["our-model"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"base_url": "ftp://host/v1"}, "http"),
        ({"base_url": "http://user:secret@host/v1"}, "must not contain a user"),
        ({"slug": "extractive"}, "slug is reserved"),
        ({"slug": "ours"}, "has this slug"),
        ({"name": "!!!"}, "a letter (a-z)"),
        ({"api_key": "with blank"}, "visible ASCII"),
        ({"max_answer_tokens": "8000"}, "at most half"),
        ({"min_temperature": "0.8", "max_temperature": "0.2"}, "maximum is below the minimum"),
    ],
)
def test_what_is_wrong_is_said(alice, form, stored, fields, words):
    got = alice.post(NEW, form(**fields))
    assert got.status_code == 422
    assert words in got.content.decode()
    assert LanguageModel.objects.count() == 1


def test_without_a_name_only_the_name_is_missing(alice, form):
    got = alice.post(NEW, form(name=""))
    assert list(got.context["form"].errors) == ["name"]


def test_rules_are_set_and_removed(alice, stored, world):
    address = "/language-models/routing/"
    alice.post(address, {"compartment": world.ledger.compartment_id, "user": "", "language_model": "ours"})
    alice.post(address, {"compartment": "", "user": "bob", "language_model": "none"})
    page = alice.get(LIST).content.decode()
    assert "passages go only to Ours" in page
    assert "answered with quotes only" in page
    assert len(audited("routing.changed")) == 2
    rule = RoutingRule.objects.get(user=world.bob)
    alice.post(f"/language-models/routing/{rule.pk}/remove/")
    assert RoutingRule.objects.count() == 1
    assert len(audited("routing.removed")) == 1


@pytest.mark.parametrize(
    "fields", [{"user": "nobody"}, {"user": ""}, {"user": "bob", "compartment": "both"}, {"language_model": "gone"}]
)
def test_a_rule_that_cannot_be_is_refused(alice, stored, world, fields):
    sent = {"compartment": "", "user": "bob", "language_model": "ours", **fields}
    if sent["compartment"]:
        sent["compartment"] = world.ledger.compartment_id
    assert alice.post("/language-models/routing/", sent).status_code == 422
    assert not RoutingRule.objects.exists()


def test_a_model_with_rules_is_not_deleted(alice, stored, world):
    RoutingRule.objects.create(compartment=world.ledger.compartment, language_model=stored)
    assert "Rules use this model" in alice.get("/language-models/ours/delete/").content.decode()
    alice.post("/language-models/ours/delete/")
    assert LanguageModel.objects.filter(slug="ours").exists()
    RoutingRule.objects.all().delete()
    alice.post("/language-models/ours/delete/")
    assert not LanguageModel.objects.exists()
    assert len(audited("language_model.deleted")) == 1


def test_the_environments_model_is_locked(alice, form, settings, llm, world):
    settings.CORECUBE_LLM_URL, settings.CORECUBE_LLM_MODEL = llm.url, "fake-large"
    settings.CORECUBE_LLM_API_KEY = SECRET
    page = alice.get(LIST).content.decode()
    assert "environment" in page
    assert "default" in page
    page = alice.get("/language-models/environment/").content.decode()
    assert "CORECUBE_LLM_URL" in page
    assert SECRET not in page
    assert "The model answers" in alice.post("/language-models/environment/", form(do="test")).content.decode()
    sent = form(base_url="http://evil.example/v1", model="other", api_key="x", prompt_price="3", slug="new-slug")
    assert alice.post("/language-models/environment/", sent).status_code == 302
    model = LanguageModel.objects.get()
    assert (model.slug, model.base_url, model.model, model.sealed_key) == ("environment", llm.url, "fake-large", "")
    assert model.prompt_price == 3
    alice.post("/language-models/environment/delete/")
    assert LanguageModel.objects.exists()


@pytest.fixture
def used(world, stored):
    key, _ = ApiKey.issue(user=world.bob, name="program")
    row = {"language_model": stored, "model_name": "Ours", "prompt_tokens": 1000, "completion_tokens": 50, "seconds": 1}
    Usage.objects.create(user=world.bob, key=key, cost=Decimal("0.25"), **row)
    Usage.objects.create(user=world.bob, cost=Decimal("0.5"), **row)
    Usage.objects.create(user=world.alice, cost=Decimal("1.5"), is_estimated=True, **row)


def test_usage_is_summed_by_model_user_key_and_month(alice, used):
    page = alice.get("/language-models/usage/").content.decode()
    for words in ("By model", "By user", "By API key", "By month", "3,000", "2.25", "0.7500", "program", "Cost by day"):
        assert words in page


def test_usage_of_who_is_gone_stays(alice, used, world, stored):
    stored.delete()
    world.bob.delete()
    page = alice.get("/language-models/usage/").content.decode()
    assert "Ours (deleted)" in page
    assert "a deleted user" in page
    assert "2.25" in page


def test_no_usage_says_so(alice):
    assert "No usage in this period" in alice.get("/language-models/usage/?days=nonsense").content.decode()


def test_usage_costs_few_queries(alice, used, django_assert_max_num_queries):
    with django_assert_max_num_queries(9):
        alice.get("/language-models/usage/")


def test_the_list_costs_few_queries(alice, stored, django_assert_max_num_queries):
    for number in range(10):
        LanguageModel.objects.create(slug=f"m{number}", name=f"M{number}", base_url="http://h/v1", model="m")
    with django_assert_max_num_queries(7):
        alice.get(LIST)


def told(response):
    return [str(message) for message in response.context["messages"]]


def test_saving_tests_a_model_and_says_that_it_answers(alice, form):
    page = alice.post(NEW, form(), follow=True)
    assert told(page) == ["Our model was added. The model answers."]
    (row,) = page.context["rows"]
    assert (row["label"], row["tone"]) == ("ready", "good")


@pytest.mark.django_db(transaction=True)  # Health looks from threads of its own
def test_a_model_that_cannot_be_reached_is_saved_with_a_warning_and_never_ready(alice, form, llm):
    llm.fault = Fault.ERROR
    page = alice.post(NEW, form(), follow=True)
    assert told(page)[0].startswith("Our model was added, but the model does not answer: Our model failed (status 500)")
    assert "notice is-warn" in page.content.decode()
    (row,) = page.context["rows"]
    assert (row["label"], row["tone"]) == ("not answering", "bad")
    assert "status 500" in row["detail"]
    # Nothing of what was typed is lost.
    assert 'value="fake-small"' in alice.get("/language-models/our-model/").content.decode()
    part = next(it for it in alice.get("/health/").context["rows"] if it.key == "language_model")
    assert part.tone == "warn"
    assert "Our model has not answered: " in part.detail
    assert SECRET not in part.detail
    LanguageModel.objects.update(failing_since=timezone.now() - timedelta(minutes=3))
    assert alice.get(LIST).context["rows"][0]["label"] == "not answering for 3 minutes"
    llm.fault = Fault.NONE
    page = alice.post("/language-models/our-model/", form(slug="our-model", temperature="0.2"), follow=True)
    assert told(page) == ["Our model was saved. The model answers."]
    assert page.context["rows"][0]["label"] == "ready"


def test_a_model_that_nobody_tried_is_not_called_ready(alice, stored):
    (row,) = alice.get(LIST).context["rows"]
    assert (row["label"], row["tone"]) == ("not tested yet", "warn")


def test_a_test_of_what_is_stored_is_remembered(alice, stored, llm, form, htmx):
    unchanged = form(
        name="Ours",
        slug="ours",
        api_key="",
        timeout_seconds="60",
        silence_seconds="30",
        prompt_price="0",
        completion_price="0",
        do="test",
    )
    llm.fault = Fault.UNAUTHORIZED
    assert "No answer" in alice.post("/language-models/ours/", unchanged, headers=htmx).content.decode()
    assert alice.get(LIST).context["rows"][0]["tone"] == "bad"
    llm.fault = Fault.NONE
    assert "The model answers" in alice.post("/language-models/ours/", unchanged, headers=htmx).content.decode()
    assert alice.get(LIST).context["rows"][0]["label"] == "ready"


def test_a_tile_shows_the_test_the_last_answer_and_the_last_error(alice, stored, llm, htmx):
    (row,) = alice.get(LIST).context["rows"]
    assert (row["answered"], row["checked"], row["failed"], row["is_paused"]) == ("never", "", "", False)
    tile = alice.post(f"{LIST}ours/test/", headers=htmx).content.decode()
    assert "Time to first token" in tile
    assert "<html" not in tile
    llm.fault = Fault.NO_MODEL
    tile = alice.post(f"{LIST}ours/test/", headers=htmx).content.decode()
    assert escape(WORDS["model_advice"]["answer_refused"]) in tile
    (row,) = alice.get(LIST).context["rows"]
    assert (row["answered"], row["failed"], row["tone"]) == ("just now", "just now", "bad")
    assert "does not exist there" in row["detail"]
    assert told(alice.post(f"{LIST}ours/test/", follow=True))[0].startswith("Ours does not answer: ")


def test_a_model_that_is_saved_switched_off_is_not_asked(alice, form, llm):
    page = alice.post(NEW, form(is_enabled=""), follow=True)
    assert told(page) == ["Our model was added."]
    assert llm.requests == []


@pytest.mark.parametrize("preset", PRESETS.values(), ids=PRESETS)
def test_a_preset_fills_in_the_form(alice, preset):
    page = alice.get(f"{NEW}?preset={preset.slug}").content.decode()
    assert f'value="{preset.base_url}"' in page
    assert f'value="{preset.context_tokens}"' in page
    assert f'href="?preset={preset.slug}" aria-current="true"' in page
    assert escape(preset.note) in page


def test_an_unknown_preset_is_none(alice):
    assert (
        "aria-current"
        not in re.findall(r"preset-list.*?</nav>", alice.get(f"{NEW}?preset=x").content.decode(), re.DOTALL)[0]
    )


def test_the_models_of_the_service_are_listed_without_a_name_and_a_model(alice, form, llm, htmx):
    got = alice.post(f"{NEW}?preset=openai", form(do="models", name="", model=""), headers=htmx)
    page = got.content.decode()
    assert got.status_code == 200
    assert '<option value="fake-large">fake-large</option>' in page
    assert "2 models found" in page
    assert llm.requests == []
    assert not LanguageModel.objects.exists()


def test_a_list_that_cannot_be_read_says_why(alice, form):
    page = alice.post(NEW, form(do="models", api_key="sk-wrong-one")).content.decode()
    assert "refused the API key" in page
    assert "sk-wrong-one" not in page


def test_the_key_is_not_sent_to_another_host_for_a_list(alice, form, stored):
    with FakeLLM() as elsewhere:
        got = alice.post("/language-models/ours/", form(do="models", slug="ours", api_key="", base_url=elsewhere.url))
        assert got.status_code == 422
        assert elsewhere.connections == 0


@pytest.fixture
def found(monkeypatch):
    """Let the servers on this machine be searched at these ports."""
    with FakeLLM() as local:
        local.models = ["llama3.2:1b", "qwen2.5:0.5b"]
        monkeypatch.setattr(local_servers, "_PORTS", {local.port: "ollama"})
        monkeypatch.setattr(local_servers.local_servers, "__kwdefaults__", {"own_ports": (), "ports": (local.port,)})
        yield local


LOCAL = "/language-models/local/"


def test_a_server_on_this_machine_is_found_and_added_with_one_click(alice, found, htmx):
    page = alice.get(LOCAL, headers=htmx).content.decode()
    assert "Found on this machine" in page
    assert "llama3.2:1b" in page
    assert "<html" not in page
    found.says("ready")
    got = alice.post(LOCAL, {"port": str(found.port), "model": "llama3.2:1b"})
    assert got.headers["Location"] == LIST
    model = LanguageModel.objects.get()
    assert (model.slug, model.name, model.model) == ("ollama-llama3-2-1b", "llama3.2:1b (Ollama)", "llama3.2:1b")
    assert (model.base_url, model.is_default, model.context_tokens) == (found.url, True, 4096)
    assert "The model answers" in alice.get(LIST).content.decode()
    assert len(audited("language_model.created")) == 1


@pytest.mark.parametrize(
    "more", [{"model": "other"}, {"port": "9"}, {"base_url": "http://10.0.0.1/v1", "port": "http"}]
)
def test_only_what_was_found_can_be_added(alice, found, more):
    alice.post(LOCAL, {"port": str(found.port), "model": "llama3.2:1b", **more})
    assert not LanguageModel.objects.exists()
    assert "no longer offered" in alice.get(LIST).content.decode()


def test_a_model_is_not_added_twice(alice, found):
    for _ in range(2):
        alice.post(LOCAL, {"port": str(found.port), "model": "llama3.2:1b"})
    assert LanguageModel.objects.count() == 1
    assert "was not added" in alice.get(LIST).content.decode()


def test_local_servers_are_for_admins(browse, found):
    assert browse("bob").get(LOCAL).status_code == 404
    assert browse("bob").post(LOCAL, {}).status_code == 404
    assert found.connections == 0


def test_nothing_found_says_where_was_looked(alice, found):
    found.models = []
    assert "11434" in alice.get(LOCAL).content.decode()


def test_lists_do_not_look_for_servers_themselves(alice, found):
    for path in (LIST, NEW):
        assert LOCAL in alice.get(path).content.decode()
    assert found.connections == 0
