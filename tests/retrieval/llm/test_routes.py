"""Routing on the wire: two language models behind real HTTP, and what each of them gets to hear."""

import asyncio
import json
from decimal import Decimal

import pytest
from asgiref.sync import async_to_sync

from corecube.access import ScopeRequest
from corecube.models import ApiKey
from corecube.secrets import Purpose, seal
from retrieval.answers.answering import answered, prepare
from retrieval.answers.memory.items import Item, remember
from retrieval.answers.providers import route_for
from retrieval.llm.clients import KEY, client_of
from retrieval.llm.types import Turn
from retrieval.models import LanguageModel, Memory, RoutingRule, Usage
from retrieval.search.request import SearchRequest
from retrieval.search.service import search
from tests.fake_llm import FakeLLM, Fault

SAID = "It takes four minutes [1]."


@pytest.fixture
def cloud():
    with FakeLLM() as fake:
        fake.says(SAID)
        yield fake


@pytest.fixture
def local():
    with FakeLLM() as fake:
        fake.says(SAID)
        yield fake


@pytest.fixture
def models(world, cloud, local):
    return {"cloud": stored("cloud", cloud, is_default=True), "local": stored("local", local)}


def stored(slug, fake, **more):
    settings = {"max_retries": 0, "timeout_seconds": 5, "silence_seconds": 2, **more}
    return LanguageModel.objects.create(slug=slug, name=slug.title(), base_url=fake.url, model="fake-small", **settings)


def bind(compartment, model):
    RoutingRule.objects.create(compartment=compartment, language_model=model)


def ask(world, question, name="alice", history=(), key=None):
    principal = world.principal(name)
    if key is not None:
        principal = type(principal)(principal.user, key)
    outcome = search(SearchRequest(text=question), principal=principal)
    assert outcome.passages
    return answered(prepare(outcome, principal, tuple(history)))


def test_without_a_model_the_answer_quotes(world):
    done = ask(world, "How long does draining the queue take?")
    assert done.extractive
    assert done.notices == ()


def test_the_default_answers(world, models, cloud, local):
    done = ask(world, "How long does draining the queue take?")
    assert (done.provider, done.text) == ("cloud", SAID)
    assert "Draining the queue takes four minutes" in cloud.heard()
    assert local.requests == []


def test_a_users_rule_chooses_also_for_their_keys(world, models, cloud, local):
    RoutingRule.objects.create(user=world.bob, language_model=models["local"])
    key, _ = ApiKey.issue(user=world.bob, name="program")
    assert ask(world, "draining the queue", "bob").provider == "local"
    assert ask(world, "draining the queue", "bob", key=key).provider == "local"
    assert ask(world, "draining the queue", "alice").provider == "cloud"


def test_a_user_without_a_model_gets_quotations(world, models, cloud, local):
    RoutingRule.objects.create(user=world.bob, language_model=None)
    assert ask(world, "draining the queue", "bob").extractive
    assert cloud.requests == local.requests == []


def test_a_bound_compartments_passages_go_to_its_model_only(world, models, cloud, local):
    bind(world.ledger.compartment, models["local"])
    done = ask(world, "What did the rollback in March cost?")
    assert done.provider == "local"
    assert [notice.code for notice in done.notices] == ["bound_to_model"]
    assert "48,200" in local.heard()
    assert cloud.requests == []


def test_a_bound_compartment_without_a_model_is_quoted(world, models, cloud, local):
    bind(world.ledger.compartment, None)
    done = ask(world, "What did the rollback in March cost?")
    assert done.extractive
    assert [notice.code for notice in done.notices] == ["no_model_may_read"]
    assert cloud.requests == local.requests == []


def test_passages_bound_to_two_models_are_quoted(world, models, cloud, local):
    bind(world.ledger.compartment, models["local"])
    bind(world.runbooks.compartment, models["cloud"])
    done = ask(world, "rollback")
    assert done.extractive
    assert done.notices[0].code == "no_model_may_read"
    assert cloud.requests == local.requests == []


def test_a_bound_model_that_fails_is_not_followed_by_another(world, models, cloud, local):
    bind(world.ledger.compartment, models["local"])
    LanguageModel.objects.filter(slug="local").update(fallback=models["cloud"])
    local.fault = Fault.ERROR
    done = ask(world, "What did the rollback in March cost?")
    assert done.extractive
    assert len(local.requests) == 1
    assert cloud.requests == []


@pytest.mark.parametrize("fault", [Fault.ERROR, Fault.UNAUTHORIZED, Fault.GARBAGE, Fault.SILENT, Fault.HANGS_UP])
def test_a_model_that_fails_is_followed_by_its_fallback(world, models, cloud, local, fault):
    LanguageModel.objects.filter(slug="cloud").update(fallback=models["local"])
    cloud.fault = fault
    done = ask(world, "draining the queue")
    assert done.provider == "local"
    assert "fell_back" in [notice.code for notice in done.notices]


def test_the_last_one_is_the_quoting_answerer(world, models, cloud, local):
    LanguageModel.objects.filter(slug="cloud").update(fallback=models["local"])
    cloud.fault = local.fault = Fault.ERROR
    assert ask(world, "draining the queue").extractive


def test_a_model_that_is_off_is_passed_over(world, models, cloud, local):
    LanguageModel.objects.filter(slug="cloud").update(is_enabled=False, fallback=models["local"])
    assert ask(world, "draining the queue").provider == "local"
    LanguageModel.objects.filter(slug="cloud").update(fallback=None)
    done = ask(world, "draining the queue")
    assert done.extractive
    assert [notice.code for notice in done.notices] == ["model_switched_off"]


def test_earlier_answers_from_a_bound_compartment_stay_with_its_model(world, models, cloud, local):
    bind(world.ledger.compartment, models["local"])
    history = [
        Turn("What did it cost?", "It cost 48,200 crowns, tangerine.", frozenset({world.ledger.pk})),
        Turn("How long?", "Four minutes, says pineapple.", frozenset({world.runbooks.pk})),
        Turn("From elsewhere?", "Nobody knows where from, grapefruit."),
    ]
    assert ask(world, "draining the queue", "bob", history).provider == "cloud"
    heard = cloud.heard()
    assert "pineapple" in heard
    assert "tangerine" not in heard
    assert ask(world, "What did the rollback in March cost?", "alice", history).provider == "local"
    assert all(word in local.heard() for word in ("tangerine", "pineapple", "grapefruit"))


def test_a_text_of_unknown_origin_is_kept_back_from_who_may_not_read_what_its_bringer_can(world, models, cloud, local):
    bind(world.ledger.compartment, models["local"])
    history = [Turn("From elsewhere?", "Nobody knows where from, grapefruit.")]
    ask(world, "draining the queue takes minutes", "alice", history)
    assert "grapefruit" not in cloud.heard()
    cloud.requests.clear()
    ask(world, "draining the queue", "bob", history)
    assert "grapefruit" in cloud.heard()


@pytest.mark.parametrize(("name", "who"), [("alice", "local"), ("bob", "cloud")])
def test_what_an_agent_remembered_goes_where_all_that_its_user_sees_may_go(world, models, cloud, local, name, who):
    bind(world.ledger.compartment, models["local"])
    principal = world.principal(name)
    remember(Item(text="The pump of hall seven is called Griselda."), principal=principal)
    memory = Memory.objects.get().connection.slug
    request = SearchRequest(text="pump Griselda", narrowing=ScopeRequest(include=(memory,)))
    assert answered(prepare(search(request, principal=principal), principal)).provider == who
    assert {it for it, fake in (("cloud", cloud), ("local", local)) if "Griselda" in fake.heard()} == {who}


def test_usage_is_kept_with_user_key_search_and_cost(world, models, cloud):
    LanguageModel.objects.filter(slug="cloud").update(prompt_price=2, completion_price=8)
    key, _ = ApiKey.issue(user=world.bob, name="program")
    done = ask(world, "draining the queue", "bob", key=key)
    usage = Usage.objects.get()
    assert (usage.user, usage.key, usage.language_model.slug, usage.model_name) == (world.bob, key, "cloud", "Cloud")
    assert (usage.prompt_tokens, usage.completion_tokens) == (done.usage.prompt, done.usage.completion)
    assert usage.completion_tokens == 5
    assert usage.cost == Decimal(2 * usage.prompt_tokens + 8 * 5) / 1_000_000
    assert not usage.is_estimated
    assert usage.record_id is not None


def test_usage_is_estimated_where_the_service_does_not_say(world, models, cloud):
    cloud.fault = Fault.NO_USAGE
    done = ask(world, "draining the queue")
    usage = Usage.objects.get()
    assert usage.is_estimated
    assert done.usage.is_estimated
    assert usage.prompt_tokens > 100
    # SAID by the hash encoder's tokens.
    assert usage.completion_tokens == 8


def test_a_broken_answer_is_paid_for_too(world, models, cloud):
    cloud.fault = Fault.CUT
    assert ask(world, "draining the queue").extractive
    assert Usage.objects.get().is_estimated


def test_what_fails_before_a_word_costs_nothing(world, models, cloud):
    cloud.fault = Fault.ERROR
    ask(world, "draining the queue")
    assert not Usage.objects.exists()


def test_a_change_of_settings_makes_a_new_client(world, models, cloud):
    first = client_of(models["cloud"])
    assert client_of(LanguageModel.objects.get(slug="cloud")) is first
    LanguageModel.objects.filter(slug="cloud").update(
        sealed_key=seal({KEY: "another"}, Purpose.LANGUAGE_MODEL), timeout_seconds=6
    )
    ask(world, "draining the queue")
    assert cloud.headers[-1]["authorization"] == "Bearer another"
    assert client_of(LanguageModel.objects.get(slug="cloud")) is not first


def test_a_key_that_cannot_be_opened_switches_its_model_off(world, models, cloud):
    LanguageModel.objects.filter(slug="cloud").update(sealed_key=seal({KEY: "other purpose"}))
    assert ask(world, "draining the queue").extractive
    assert cloud.requests == []


def test_a_route_needs_few_queries(world, models, django_assert_max_num_queries):
    bind(world.ledger.compartment, models["local"])
    principal = world.principal("alice")
    outcome = search(SearchRequest(text="rollback"), principal=principal)
    with django_assert_max_num_queries(4):
        route_for(principal, outcome.passages)


@pytest.fixture
def named(settings, local):
    settings.CORECUBE_LLM_URL = local.url
    settings.CORECUBE_LLM_MODEL = "fake-large"
    settings.CORECUBE_LLM_API_KEY = "of-the-environment"
    return settings


def test_the_environments_model_is_the_default(world, models, named, cloud, local):
    assert ask(world, "draining the queue").provider == "environment"
    assert local.requests[0]["model"] == "fake-large"
    assert local.headers[0]["authorization"] == "Bearer of-the-environment"
    assert cloud.requests == []
    assert Usage.objects.get().language_model.is_locked
    assert "of-the-environment" not in json.dumps(list(LanguageModel.objects.values("sealed_key")))


def test_a_model_that_the_environment_names_no_more_is_off(world, models, named, cloud, local):
    ask(world, "draining the queue")
    named.CORECUBE_LLM_URL = named.CORECUBE_LLM_MODEL = ""
    assert ask(world, "draining the queue").provider == "cloud"
    assert not LanguageModel.objects.get(slug="environment").is_enabled


def test_a_reader_who_leaves_is_charged(world, models, cloud):
    from contextlib import aclosing

    cloud.fault, cloud.drip_seconds = Fault.SLOW_DRIP, 0.05
    cloud.says("word " * 100)
    principal = world.principal("bob")
    outcome = search(SearchRequest(text="draining the queue"), principal=principal)
    provider = prepare(outcome, principal).route.providers[0]
    work = prepare(outcome, principal).task

    async def leave():
        async with aclosing(provider.stream(work)) as pieces:
            async for _ in pieces:
                await asyncio.sleep(0)
                break

    async_to_sync(leave)()
    usage = Usage.objects.get()
    assert usage.is_estimated
    assert usage.completion_tokens < 10
