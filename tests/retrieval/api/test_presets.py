"""The presets' configurations over HTTP: for admins alone."""

import pytest
from django.test import Client

from corecube.models import ApiKey, AuditEvent, Compartment
from corecube.scope import Sensitivity
from retrieval.models import PresetVersion
from retrieval.presets.catalog import PRESETS

PRESETS_PATH = "/api/v1/presets"
VERSIONS = "/api/v1/presets/corecube/versions"
DRAFT = "/api/v1/presets/corecube/draft"
PROMOTE = "/api/v1/presets/corecube/promote"
BODY = {"values": {"blend.dense": 0.8}, "note": "More of the vector leg"}
#: Everything that is for admins.
MANAGED = [("get", VERSIONS, None), ("put", DRAFT, BODY), ("delete", DRAFT, None), ("post", PROMOTE, {"number": 0})]


@pytest.fixture
def send(client):
    """Return a function that sends a request with a key's secret."""

    def sent(method, path, body=None, secret=""):
        headers = {"Authorization": f"Bearer {secret}"} if secret else {}
        return getattr(client, method)(path, body, content_type="application/json", headers=headers)

    return sent


@pytest.fixture
def secret_of(people):
    """Return a function that makes a key and returns its secret."""
    return lambda name: ApiKey.issue(user=people[name], name="test")[1]


@pytest.fixture
def alice(secret_of, send):
    """Return a function that sends a request with a key of Alice's."""
    secret = secret_of("alice")
    return lambda method, path, body=None: send(method, path, body, secret)


def error_of(response):
    error = response.json()["error"]
    return response.status_code, error["code"], error["param"]


def live(world, post):
    return post("/api/v1/search", {"query": "rollback"}, world.key("bob")).json()["version"]


def test_anyone_may_list_what_they_may_use_and_nothing_more(secret_of, get):
    for name in ("bob", "charlie"):
        listed = get(PRESETS_PATH, secret_of(name)).json()["presets"]
        assert listed == [{"name": it.name, "description": it.description} for it in PRESETS.values()]


def test_a_key_for_other_presets_lists_none_of_them(people, get):
    key, secret = ApiKey.issue(user=people["alice"], name="k")
    key.presets = ["none of them"]
    key.save()
    assert get(PRESETS_PATH, secret).json() == {"presets": []}


def test_an_admin_is_told_every_tunable_with_its_live_value(secret_of, get):
    PresetVersion.objects.create(preset="corecube", number=4, status="live", values={"fusion.pool": 50})
    listed = get(PRESETS_PATH, secret_of("alice")).json()["presets"][0]
    tunables = {it["name"]: it for it in listed["tunables"]}
    assert listed["version"] == 4
    assert list(tunables) == list(PRESETS["corecube"].defaults.values())
    assert tunables["fusion.pool"] == {
        "name": "fusion.pool",
        "default": 160,
        "low": 1,
        "high": 2000,
        "unit": "hits",
        "help": "Maximum number of fused hits in the pool.",
        "costs": True,
        "value": 50,
    }


def managed_requests(preset="corecube"):
    return [(method, path.replace("corecube", preset), body) for method, path, body in MANAGED]


@pytest.mark.parametrize("name", ["bob", "charlie"])
@pytest.mark.parametrize("preset", ["corecube", "nope"])
def test_nobody_else_reads_or_changes_anything_whether_or_not_it_exists(secret_of, send, name, preset):
    secret = secret_of(name)
    for request in managed_requests(preset):
        assert error_of(send(*request, secret)) == (403, "not_permitted", None)
    assert not PresetVersion.objects.exists()
    assert not AuditEvent.objects.filter(action__startswith="preset.").exists()


@pytest.mark.parametrize("secret", ["", "cc_wrong"])
def test_without_a_key_it_is_refused(db, send, secret):
    for request in [("get", PRESETS_PATH, None), *managed_requests()]:
        assert send(*request, secret).status_code == 401


@pytest.mark.parametrize("narrowing", ["compartment", "sensitivity", "preset"])
def test_not_even_an_admin_with_a_key_for_a_part_changes_the_whole(people, send, narrowing):
    key, secret = ApiKey.issue(user=people["alice"], name="k")
    if narrowing == "compartment":
        key.compartments.add(Compartment.objects.create(slug="engineering", name="Engineering"))
    elif narrowing == "sensitivity":
        key.max_sensitivity = Sensitivity.RESTRICTED
    else:
        key.presets = ["none of them"]
    key.save()
    for request in managed_requests():
        assert send(*request, secret).status_code == 403
    assert "tunables" not in send("get", PRESETS_PATH, None, secret).content.decode()
    assert not PresetVersion.objects.exists()


def test_a_draft_is_saved_read_promoted_and_rolled_back(world, alice, post):
    saved = alice("put", DRAFT, BODY).json()
    assert (saved["number"], saved["status"], saved["values"], saved["created_by"]) == (
        1,
        "draft",
        {"blend.dense": 0.8},
        "alice",
    )
    assert live(world, post) == 0
    (listed,) = alice("get", VERSIONS).json()["versions"]
    assert listed == saved
    promoted = alice("post", PROMOTE, {"number": 1, "live": 0, "fingerprint": saved["fingerprint"]})
    assert (promoted.status_code, promoted.json()) == (200, {"preset": "corecube", "version": 1})
    assert live(world, post) == 1
    assert alice("post", PROMOTE, {"number": 0}).json()["version"] == 0
    assert live(world, post) == 0
    (listed,) = alice("get", VERSIONS).json()["versions"]
    assert (listed["status"], listed["promoted_by"]) == ("retired", "alice")


def test_a_draft_is_discarded(alice):
    alice("put", DRAFT, BODY)
    assert alice("delete", DRAFT).status_code == 204
    assert alice("get", VERSIONS).json()["versions"] == []
    assert error_of(alice("delete", DRAFT)) == (404, "unknown_version", None)


def test_a_draft_is_replaced_by_who_names_it(alice):
    first = alice("put", DRAFT, BODY).json()
    assert error_of(alice("put", DRAFT, BODY)) == (409, "version_conflict", None)
    second = alice("put", DRAFT, {"values": {}, "replaces": first["fingerprint"]})
    assert (second.status_code, second.json()["values"]) == (200, {})
    assert error_of(alice("put", DRAFT, {"values": {}, "replaces": first["fingerprint"]}))[0] == 409


@pytest.mark.parametrize(
    ("body", "param", "named"),
    [
        ({"values": {"blend.dense": 2}}, "values", "blend.dense must be between"),
        ({"values": {"blend.dense": True}}, "values", "blend.dense must be a number"),
        ({"values": {"fusion.pool": "7"}}, "values", "fusion.pool must be a number"),
        ({"values": {"fusion.pool": 1.5}}, "values", "fusion.pool must be a whole number"),
        ({"values": {"nope": 1}}, "values", "nope is not a setting"),
        ({"values": {"answerability.partial_from": 0.9}}, "values", "must not exceed answerability.answerable_from"),
        ({"values": [1]}, "values", ""),
        ({}, "values", ""),
        ({"values": {}, "note": "x" * 201}, "note", ""),
        ({"values": {}, "status": "live"}, "status", ""),
        ('{"values": {"blend.dense": NaN}}', "values", "blend.dense must be between"),
        ('{"values": {"blend.dense": 1' + "0" * 400 + "}}", "values", "blend.dense must be between"),
    ],
)
def test_a_bad_draft_is_refused_and_its_keys_are_named(alice, body, param, named):
    response = alice("put", DRAFT, body)
    status, code, where = error_of(response)
    assert (status, where) == (422, param)
    assert code in {"invalid_values", "invalid_request"}
    assert named in response.json()["error"]["message"]
    assert not PresetVersion.objects.exists()


@pytest.mark.parametrize(
    ("body", "refusal"),
    [
        ({"number": 7}, (404, "unknown_version", None)),
        ({"number": 0}, (409, "version_conflict", None)),
        ({"number": 1, "live": 3}, (409, "version_conflict", None)),
        ({"number": 1, "fingerprint": "stale"}, (409, "version_conflict", None)),
        ({"number": -1}, (422, "invalid_request", "number")),
        ({"number": 2**40}, (422, "invalid_request", "number")),
        ({}, (422, "invalid_request", "number")),
    ],
)
def test_a_bad_promotion_is_refused(alice, body, refusal):
    alice("put", DRAFT, BODY)
    assert error_of(alice("post", PROMOTE, body)) == refusal
    assert PresetVersion.objects.get().status == "draft"


def test_a_note_that_no_store_can_hold_is_made_storable_or_refused(alice):
    assert alice("put", DRAFT, '{"values": {}, "note": "a\\ud800"}').status_code == 422
    assert alice("put", DRAFT, '{"values": {}, "note": "a\\u0000b"}').json()["note"] == "a b"


def test_an_unknown_preset_is_named_to_an_admin(alice):
    assert error_of(alice("get", "/api/v1/presets/nope/versions")) == (404, "unknown_preset", "preset")


def test_stored_numbers_that_do_not_fit_are_told_apart(alice):
    PresetVersion.objects.create(
        preset="corecube", number=1, status="live", values={"blend.dense": "much", "fusion.pool": 50}
    )
    (version,) = alice("get", VERSIONS).json()["versions"]
    assert (version["values"], version["unfit"]) == ({"fusion.pool": 50}, {"blend.dense": "must be a number"})


def test_the_browser_needs_its_csrf_token(people):
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(people["alice"])
    assert browser.put(DRAFT, BODY, content_type="application/json").status_code == 403
    assert not PresetVersion.objects.exists()


class TestSearching:
    def test_overrides_hold_for_one_request(self, world, post):
        secret = world.key("bob")
        body = {"query": "rollback staging", "explain": True}
        plain = post("/api/v1/search", body, secret).json()
        tuned = post("/api/v1/search", body | {"overrides": {"blend.dense": 0.0}}, secret).json()
        assert plain["hits"][0]["explain"]["contributions"]["dense"] > 0
        assert all(hit["explain"]["contributions"]["dense"] == 0 for hit in tuned["hits"])
        assert plain["preset_version"] != tuned["preset_version"]
        assert tuned["explain"]["spans"][0]["notes"][0]["code"] == "overridden"

    @pytest.mark.parametrize(
        ("overrides", "named"),
        [
            ({"nope": 1}, "nope is not a setting"),
            ({"blend.dense": 7}, "blend.dense must be between"),
            ({"blend.dense": "0.5"}, "blend.dense must be a number"),
            ({"deadline_ms": 600_000}, "deadline_ms is costly"),
            ({"x" * 100_000: 1}, "is not a setting"),
        ],
    )
    def test_an_override_out_of_limits_is_refused_and_named(self, world, post, overrides, named):
        secret = world.key("bob")
        response = post("/api/v1/search", {"query": "rollback", "overrides": overrides}, secret)
        assert error_of(response) == (422, "invalid_overrides", "overrides")
        assert named in response.json()["error"]["message"]
        assert len(response.content) < 500
        chat = {"model": "corecube", "messages": [{"role": "user", "content": "rollback"}]}
        response = post("/v1/chat/completions", chat | {"corecube": {"overrides": overrides}}, secret)
        assert error_of(response) == (422, "invalid_overrides", "corecube.overrides")

    def test_too_many_overrides_are_refused(self, world, post):
        overrides = {f"n{number}": 1 for number in range(201)}
        response = post("/api/v1/search", {"query": "rollback", "overrides": overrides}, world.key("bob"))
        assert error_of(response) == (422, "invalid_request", "overrides")

    def test_a_chat_takes_overrides(self, world, ask):
        own = {"overrides": {"assemble.budget_tokens": 100}, "explain": True}
        answer = ask("how do we roll back staging?", world.key("bob"), corecube=own).json()
        spans = answer["corecube"]["explain"]["explain"]["spans"]
        assert "assemble.budget_tokens to 100 instead of 4000" in spans[0]["notes"][0]["text"]

    def test_only_an_admin_searches_with_the_draft(self, world, post, alice):
        alice("put", DRAFT, BODY)
        body = {"query": "rollback", "draft": True}
        assert post("/api/v1/search", body, world.key("alice")).json()["version"] == 1
        assert error_of(post("/api/v1/search", body, world.key("bob"))) == (403, "not_permitted", None)
        alice("delete", DRAFT)
        assert error_of(post("/api/v1/search", body, world.key("alice"))) == (404, "unknown_version", None)
