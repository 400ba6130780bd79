"""Language models, routing and usage over the API."""

from decimal import Decimal

import pytest

from corecube.models import ApiKey
from corecube.secrets import Purpose, unseal
from retrieval.llm.clients import KEY
from retrieval.models import LanguageModel, RoutingRule, Usage
from tests.fake_llm import FakeLLM, Fault

PATH = "/api/v1/language-models"


@pytest.fixture
def llm():
    with FakeLLM() as fake:
        fake.says("ready")
        yield fake


@pytest.fixture
def send(client, world):
    """Return a function that sends a request with Alice's key, or with another one."""
    alice = world.key("alice")

    def ask(method, path, body=None, secret=alice):
        more = {} if body is None else {"data": body, "content_type": "application/json"}
        return getattr(client, method)(path, headers={"Authorization": f"Bearer {secret}"}, **more)

    return ask


@pytest.fixture
def body(llm):
    return {"name": "Our model", "base_url": llm.url, "model": "fake-small", "api_key": "sk-hush", "max_retries": 0}


CALLS = [
    ("get", PATH, None),
    ("post", PATH, {"name": "x", "base_url": "http://h/v1", "model": "m"}),
    ("post", f"{PATH}/test", {"name": "x", "base_url": "http://h/v1", "model": "m"}),
    ("get", f"{PATH}/any", None),
    ("patch", f"{PATH}/any", {"name": "y"}),
    ("delete", f"{PATH}/any", None),
    ("post", f"{PATH}/any/test", {}),
    ("get", "/api/v1/routing", None),
    ("post", "/api/v1/routing", {"user": "bob", "language_model": None}),
    ("delete", "/api/v1/routing?user=bob", None),
    ("get", "/api/v1/usage", None),
]


@pytest.mark.parametrize(("method", "path", "sent"), CALLS)
def test_only_for_admins_whose_key_is_not_narrowed(send, world, method, path, sent):
    narrowed, secret = ApiKey.issue(user=world.alice, name="narrow")
    narrowed.compartments.add(world.ledger.compartment)
    for other in (world.key("bob"), secret):
        assert send(method, path, sent, other).status_code == 403
    assert not LanguageModel.objects.exists()


def test_a_model_is_added_changed_read_and_deleted(send, body):
    added = send("post", PATH, body)
    assert added.status_code == 201
    assert added.json()["language_model"] == "our-model"
    assert added.json()["api_key"] == 7
    assert "sk-hush" not in added.content.decode()
    changed = send("patch", f"{PATH}/our-model", {"temperature": 0.5, "default": True, "enabled": True})
    assert (changed.json()["temperature"], changed.json()["default"]) == (0.5, True)
    assert unseal(LanguageModel.objects.get().sealed_key, Purpose.LANGUAGE_MODEL) == {KEY: "sk-hush"}
    assert [it["language_model"] for it in send("get", PATH).json()] == ["our-model"]
    assert send("get", f"{PATH}/our-model").json()["model"] == "fake-small"
    assert send("delete", f"{PATH}/our-model").status_code == 204
    assert send("get", f"{PATH}/our-model").status_code == 404


def test_the_key_does_not_follow_to_another_host(send, body):
    send("post", PATH, body)
    moved = send("patch", f"{PATH}/our-model", {"base_url": "http://elsewhere.example/v1"})
    assert moved.status_code == 422
    assert moved.json()["error"]["param"] == "api_key"
    again = send("patch", f"{PATH}/our-model", {"base_url": "http://elsewhere.example/v1", "api_key": ""})
    assert (again.status_code, again.json()["api_key"]) == (200, 0)


def test_a_trial_says_what_came_of_it(send, body, llm):
    tried = send("post", f"{PATH}/test", body).json()
    assert (tried["ok"], tried["said"], tried["models"]) == (True, "ready", ["fake-large", "fake-small"])
    assert not LanguageModel.objects.exists()
    send("post", PATH, body)
    llm.fault = Fault.UNAUTHORIZED
    tried = send("post", f"{PATH}/our-model/test", {}).json()
    assert not tried["ok"]
    assert "refused the API key" in tried["problem"]
    assert llm.headers[-1]["authorization"] == "Bearer sk-hush"


@pytest.mark.parametrize(
    ("more", "param"),
    [
        ({"base_url": "ftp://h/v1"}, "base_url"),
        ({"slug": "extractive"}, "slug"),
        ({"fallback": "nobody"}, None),
        ({"temperature": 5}, "temperature"),
        ({"unknown": 1}, "unknown"),
        ({"api_key": "a b"}, "api_key"),
    ],
)
def test_what_cannot_be_is_refused(send, body, more, param):
    got = send("post", PATH, {**body, **more})
    assert got.status_code in {404, 422}
    assert got.json()["error"]["param"] == param
    assert not LanguageModel.objects.exists()


def test_rules(send, body, world):
    send("post", PATH, body)
    assert send("post", "/api/v1/routing", {"compartment": "finance", "language_model": "our-model"}).status_code == 200
    assert send("post", "/api/v1/routing", {"user": "bob", "language_model": None}).status_code == 200
    assert send("get", "/api/v1/routing").json() == [
        {"user": None, "compartment": "finance", "language_model": "our-model"},
        {"user": "bob", "compartment": None, "language_model": None},
    ]
    kept = send("delete", f"{PATH}/our-model")
    assert (kept.status_code, kept.json()["error"]["code"]) == (409, "language_model_in_use")
    assert send("delete", "/api/v1/routing?compartment=finance").status_code == 204
    assert send("delete", "/api/v1/routing?compartment=finance").status_code == 404
    assert send("delete", f"{PATH}/our-model").status_code == 204
    assert RoutingRule.objects.count() == 1


@pytest.mark.parametrize(
    ("rule", "status"),
    [
        ({"language_model": None}, 422),
        ({"user": "bob", "compartment": "finance", "language_model": None}, 422),
        ({"user": "nobody", "language_model": None}, 404),
        ({"compartment": "nowhere", "language_model": None}, 404),
        ({"user": "bob", "language_model": "gone"}, 404),
    ],
)
def test_a_rule_that_cannot_be_is_refused(send, world, rule, status):
    assert send("post", "/api/v1/routing", rule).status_code == status
    assert not RoutingRule.objects.exists()


def test_usage_is_summed(send, world):
    row = {"model_name": "Ours", "prompt_tokens": 100, "completion_tokens": 5, "seconds": 1, "cost": Decimal("0.5")}
    key, _ = ApiKey.issue(user=world.bob, name="program")
    Usage.objects.create(user=world.bob, key=key, **row)
    Usage.objects.create(user=world.alice, is_estimated=True, **row)
    got = send("get", "/api/v1/usage").json()
    assert (got["total"]["answers"], got["total"]["prompt_tokens"], got["total"]["estimated"]) == (2, 200, 1)
    assert Decimal(got["total"]["cost"]) == 1
    assert [line["name"] for line in got["lines"]] == ["Ours"]
    by_user = send("get", "/api/v1/usage?by=user").json()["lines"]
    assert [line["name"] for line in by_user] == ["alice", "bob"]
    by_key = {line["name"] for line in send("get", "/api/v1/usage?by=key").json()["lines"]}
    assert by_key == {"no key", key.prefix}
    assert len(send("get", "/api/v1/usage?by=month").json()["lines"]) == 1
    assert send("get", "/api/v1/usage?first=2020-01-01&last=2020-01-31").json()["total"]["answers"] == 0


@pytest.mark.parametrize(
    "query", ["first=2026-02-01&last=2026-01-01", "first=0001-01-01", "last=9999-12-31", "by=colour", "last=0001-01-01"]
)
def test_days_that_cannot_be_are_refused(send, world, query):
    assert send("get", f"/api/v1/usage?{query}").status_code in {200, 422}


def test_the_state_says_whether_a_model_answers(send, body, llm):
    added = send("post", PATH, body).json()
    assert (added["state"], added["problem"]) == ("ready", "")
    llm.fault = Fault.UNAUTHORIZED
    changed = send("patch", f"{PATH}/our-model", {"temperature": 0.5}).json()
    assert changed["state"] == "failing"
    assert changed["since"]
    assert changed["checked_at"]
    assert "refused the API key" in changed["problem"]
    assert "sk-hush" not in str(changed)
    llm.fault = Fault.NONE
    assert send("post", f"{PATH}/our-model/test", {}).json()["ok"]
    assert send("get", f"{PATH}/our-model").json()["state"] == "ready"
    assert send("patch", f"{PATH}/our-model", {"enabled": False}).json()["state"] == "off"
