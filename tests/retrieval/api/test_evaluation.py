"""Evaluation over HTTP."""

from datetime import timedelta

import pytest
from django.utils import timezone

from corecube.access import scope_for
from corecube.models import ApiKey
from corecube.scope import Sensitivity
from retrieval.evaluation import schedules, sweeps
from retrieval.evaluation.runs import run_waiting
from retrieval.models import Judgment, PresetVersion, SearchRecord, Trial
from retrieval.records.judgments import PassageId, judge
from tests.questions import ROLLBACK

pytestmark = pytest.mark.usefixtures("unhurried")

SETS = "/api/v1/evaluation/sets"
RUNS = "/api/v1/evaluation/runs"


@pytest.fixture
def as_user(client, world):
    """Return a function that returns a function which sends requests with a new key of a person."""

    def keyed(name, **limits):
        key, secret = ApiKey.issue(user=getattr(world, name), name="test")
        ApiKey.objects.filter(pk=key.pk).update(name="test", **limits)
        headers = {"Authorization": f"Bearer {secret}"}

        def send(method, path, body=None):
            return getattr(client, method)(path, body, content_type="application/json", headers=headers)

        return send

    return keyed


def started(send, **body):
    response = send("post", RUNS, {"question_set": "release-questions", **body})
    assert response.status_code == 202
    return response.json()["id"]


def test_runs_are_started_read_compared_and_deleted(questions, as_user):
    send = as_user("alice")
    assert send("get", SETS).json()["question_sets"] == [
        {"slug": "release-questions", "name": "Release questions", "version": 4, "cases": 3}
    ]
    first, second = started(send), started(send, preset="helix", overrides={}, name="the other one", counts="use")
    run_waiting()
    read = send("get", f"{RUNS}/{first}").json()
    assert (read["status"], read["measures"]["ndcg"], read["results"][0]["query"]) == ("done", 1.0, ROLLBACK)
    assert (read["counts"], send("get", f"{RUNS}/{second}").json()["counts"]) == ("people", "use")
    listed = send("get", f"{RUNS}?question_set=release-questions").json()["runs"]
    assert [(it["id"], it["name"]) for it in listed] == [(second, "the other one"), (first, "")]
    compared = send("get", f"/api/v1/evaluation/compare?first={first}&second={second}").json()
    assert (compared["first"], [it["run"] for it in compared["others"]], compared["queries"]) == (first, [second], 3)
    difference = compared["others"][0]["differences"]["ndcg"]
    assert {name: difference[name] for name in ("queries", "p_value", "wins", "ties", "losses", "high")} == {
        "queries": 2,
        "p_value": 1.0,
        "wins": 0,
        "ties": 1,
        "losses": 1,
        "high": 0.0,
    }
    assert difference["low"] == 2 * difference["mean"] < 0
    assert [len(it["ndcg"]) for it in compared["spreads"]] == [2, 2]
    assert send("delete", f"{RUNS}/{first}").status_code == 204
    assert send("get", f"{RUNS}/{first}").status_code == 404


def test_several_runs_are_compared_with_the_first(questions, as_user):
    send = as_user("alice")
    ids = [started(send, preset=preset) for preset in ("corecube", "helix", "consolidated")]
    run_waiting()
    address = f"/api/v1/evaluation/compare?first={ids[0]}"
    others = "".join(f"&second={it}" for it in ids[1:])
    compared = send("get", f"{address}{others}").json()
    assert [it["run"] for it in compared["others"]] == ids[1:]
    assert compared["spreads"][0]["ndcg"][0] == 1.0
    assert send("get", address).status_code == 422
    assert send("get", address + 5 * f"&second={ids[1]}").status_code == 422


def test_a_run_answers_by_what_is_chosen(questions, as_user):
    send = as_user("alice")
    plain, run = started(send), started(send, answers=True, language_model="extractive")
    run_waiting()
    read, bare = (send("get", f"{RUNS}/{it}").json() for it in (run, plain))
    assert (read["answers"]["count"], read["language_model"], bare["answers"]) == (3, "extractive", None)
    assert read["configuration"] != bare["configuration"]
    assert read["index"] == bare["index"] > 0
    (listed, _) = send("get", RUNS).json()["runs"]
    assert (listed["answers"]["measures"]["answered"], listed["cost"], listed["reranked"]) == (1.0, 0, True)
    body = {"question_set": "release-questions"}
    for wrong in ({"index": 99}, {"language_model": "no-such"}, {"reranked": False}):
        assert send("post", RUNS, body | wrong).status_code == 422


def test_a_set_is_made_filled_and_read_with_its_agreement(as_user, world):
    send = as_user("alice")
    assert send("post", SETS, {"name": "More questions"}).json()["slug"] == "more-questions"
    found = f"{SETS}/more-questions"
    files = ["query,document,grade,user,tags\nrolling back,rollback,3,bob,release\n", "query\ndraining"]
    added = send("post", f"{found}/import", {"files": files}).json()
    assert (added["cases"], added["skipped"]) == (2, 0)
    scope = scope_for(world.principal("bob"))
    for graded in Judgment.objects.all():
        judge(graded.query, PassageId(graded.document_id, graded.content_hash), grade=3, by=world.bob, scope=scope)
    read = send("get", found).json()
    assert [(it["query"], it["user"], it["tags"]) for it in read["questions"]] == [
        ("draining", None, []),
        ("rolling back", "bob", ["release"]),
    ]
    assert read["agreement"] == [{"raters": ["alice", "bob"], "passages": added["judgments"], "kappa": None}]
    assert (read["disputed"], read["version"]) == (0, 3)
    assert send("post", f"{found}/import", {"files": ["{"]}).status_code == 422
    as_user("bob")("post", "/api/v1/search", {"query": "who is the release captain"})
    assert send("post", f"{found}/draw", {"sample": "frequent"}).json() == {"cases": 1}
    assert send("post", f"{found}/draw", {"sample": "no-such"}).status_code == 422
    assert send("get", f"{SETS}/no-such").status_code == 404


def test_a_waiting_run_is_cancelled(questions, as_user):
    send = as_user("alice")
    run = started(send)
    assert send("post", f"{RUNS}/{run}/cancel").json()["status"] == "cancelled"
    assert run_waiting() == 0


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"question_set": "no-such"}, 404),
        ({"preset": "no-such"}, 404),
        ({"draft": True}, 404),
        ({"overrides": {"no.such": 1}}, 422),
        ({"colour": "red"}, 422),
    ],
)
def test_what_cannot_be_measured_is_refused(questions, as_user, body, status):
    response = as_user("alice")("post", RUNS, {"question_set": "release-questions"} | body)
    assert response.status_code == status
    assert response.json()["error"]["message"]


def test_others_and_narrowed_keys_get_nothing(questions, as_user, world):
    run = started(as_user("alice"))
    run_waiting()
    addresses = (SETS, RUNS, f"{RUNS}/{run}", f"/api/v1/evaluation/compare?first={run}&second={run}")
    for send in (as_user("bob"), as_user("alice", max_sensitivity=Sensitivity.INTERNAL)):
        assert {send("get", address).status_code for address in addresses} == {403}
        assert send("post", RUNS, {"question_set": "release-questions"}).status_code == 403
        assert send("delete", f"{RUNS}/{run}").status_code == 403
    world.bob.is_staff = True
    world.bob.save()
    limited = as_user("bob")
    assert limited("get", RUNS).json() == {"runs": []}
    assert {limited("get", address).status_code for address in addresses[2:]} == {404}
    assert limited("post", f"{RUNS}/{run}/cancel").status_code == 404


GATES = "/api/v1/evaluation/gates"
SWEEPS = "/api/v1/evaluation/sweeps"
PRESET = "/api/v1/presets/corecube"


@pytest.fixture
def alice(questions, as_user):
    return as_user("alice")


def drafted(send, values):
    live = send("get", f"{PRESET}/versions").json()["versions"][0]
    return send("put", f"{PRESET}/draft", {"values": live["values"] | values}).json()["number"]


def test_a_gate_refuses_a_draft_and_a_reason_overrides_it(alice):
    gate = {
        "question_set": "release-questions",
        "preset": "corecube",
        "measure": "recall",
        "cutoff": 5,
        "max_loss": 0.1,
    }
    assert alice("put", GATES, gate).json() == gate
    assert alice("get", GATES).json() == {"gates": [gate]}
    number = drafted(alice, {"floor.blend": 1.0})
    refused = alice("post", f"{PRESET}/promote", {"number": number})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "gate_not_passed")
    queued = alice("post", f"{PRESET}/gate", {"number": number})
    assert (queued.status_code, queued.json()["gates"][0]["verdict"]) == (202, "measuring")
    run_waiting()
    found = alice("get", f"{PRESET}/gate?number={number}").json()
    assert (found["passed"], found["gates"][0]["verdict"], found["gates"][0]["worse"]) == (False, "below", 2)
    assert found["gates"][0]["mean"] == -1.0
    assert alice("post", f"{PRESET}/promote", {"number": number}).status_code == 409
    promoted = alice("post", f"{PRESET}/promote", {"number": number, "reason": "A test."})
    assert promoted.json() == {"preset": "corecube", "version": number}
    assert alice("post", f"{PRESET}/rollback", {"live": 1}).status_code == 409
    assert alice("post", f"{PRESET}/rollback", {}).json() == {"preset": "corecube", "version": 1}
    assert alice("post", f"{PRESET}/rollback", {}).status_code == 404
    assert alice("delete", f"{GATES}?question_set=release-questions&preset=corecube").status_code == 204
    assert alice("delete", f"{GATES}?question_set=release-questions&preset=corecube").status_code == 404
    assert alice("get", f"{PRESET}/gate?number={number}").json()["passed"] is True


def test_a_sweep_is_started_followed_and_drafted(alice):
    ranges = [{"name": "blend.dense", "values": [0.0, 1.0]}]
    started = alice("post", SWEEPS, {"question_set": "release-questions", "ranges": ranges, "max_p95_ms": 600_000})
    assert (started.status_code, started.json()["status"], started.json()["total"]) == (202, "queued", 5)
    address = f"{SWEEPS}/{started.json()['id']}"
    assert alice("post", f"{address}/draft", {}).status_code == 409
    sweeps.run_waiting()
    done = alice("get", address).json()
    assert (done["status"], done["held_out"]["queries"], len(done["trials"])) == ("done", 1, 3)
    assert [it["id"] for it in alice("get", SWEEPS).json()["sweeps"]] == [done["id"]]
    # Trials are not listed as runs, but can be read like them.
    assert alice("get", RUNS).json() == {"runs": []}
    trial = done["trials"][0]["run"]
    assert alice("get", f"{RUNS}/{trial}").json()["results"]
    assert alice("delete", f"{RUNS}/{trial}").status_code == 409
    Trial.objects.update(is_best=False)
    Trial.objects.filter(number=1).update(is_best=True)
    draft = alice("post", f"{address}/draft", {}).json()
    assert (draft["preset"], draft["values"]["blend.dense"]) == ("corecube", 0.0)
    assert alice("post", f"{address}/draft", {}).status_code == 409
    assert alice("post", f"{address}/draft", {"replaces": draft["fingerprint"]}).status_code == 200
    assert alice("delete", address).status_code == 204
    assert alice("get", address).status_code == 404


def test_a_waiting_sweep_is_cancelled(alice):
    ranges = [{"name": "blend.dense", "low": 0.1, "high": 0.9}]
    body = {"question_set": "release-questions", "method": "random", "trials": 2, "ranges": ranges}
    sweep = alice("post", SWEEPS, body).json()
    assert len(sweep["trials"]) == 3
    assert alice("post", f"{SWEEPS}/{sweep['id']}/cancel", {}).json()["status"] == "cancelled"
    assert sweeps.run_waiting() == 0


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        (GATES, {"question_set": "no-such"}, 404),
        (GATES, {"preset": "no-such"}, 422),
        (GATES, {"measure": "judged"}, 422),
        (SWEEPS, {"ranges": []}, 422),
        (SWEEPS, {"ranges": [{"name": "no.such", "values": [1]}]}, 422),
        (SWEEPS, {"ranges": [{"name": "blend.dense", "values": [7]}]}, 422),
        (SWEEPS, {"preset": "no-such", "ranges": [{"name": "blend.dense", "values": [1]}]}, 404),
    ],
    ids=str,
)
def test_what_neither_guards_nor_varies_is_refused(alice, path, body, status):
    method = "put" if path == GATES else "post"
    response = alice(method, path, {"question_set": "release-questions"} | body)
    assert response.status_code == status
    assert response.json()["error"]["message"]


def test_a_limited_admin_sees_no_sweep_of_a_wider_scope(alice, as_user, world):
    ranges = [{"name": "blend.dense", "values": [0.0]}]
    sweep = alice("post", SWEEPS, {"question_set": "release-questions", "ranges": ranges}).json()
    world.bob.is_staff = True
    world.bob.save()
    limited, address = as_user("bob"), f"{SWEEPS}/{sweep['id']}"
    assert limited("get", SWEEPS).json() == {"sweeps": []}
    assert limited("get", address).status_code == 404
    for path in (f"{address}/cancel", f"{address}/draft"):
        assert limited("post", path, {}).status_code == 404
    assert limited("delete", address).status_code == 404
    assert limited("get", f"{RUNS}/{sweep['trials'][0]['run']}").status_code == 404


def test_a_schedule_is_set_read_with_its_trend_and_removed(alice):
    schedules_address = "/api/v1/evaluation/schedules"
    body = {"question_set": "release-questions", "nightly": True, "min_mean": 0.5, "answers": True}
    (stored,) = alice("put", schedules_address, body).json()["schedules"]
    assert (stored["preset"], stored["nightly"], stored["alarm"], stored["points"]) == ("corecube", True, "", [])
    schedules.queue_due(timezone.localtime() + timedelta(days=2))
    run_waiting()
    (found,) = alice("get", f"{schedules_address}?question_set=release-questions").json()["schedules"]
    assert [it["mean"] for it in found["points"]] == [pytest.approx(1.0, abs=0.1)]
    assert (found["answers"], found["points"][0]["answers"]["not_asserted"]) == (True, 1.0)
    assert alice("put", schedules_address, {**body, "nightly": False}).json() == {"schedules": []}
    assert alice("put", schedules_address, {**body, "preset": "no-such"}).status_code == 422


EXPERIMENTS = "/api/v1/evaluation/experiments"
EXPERIMENT = {
    "name": "Agents or not",
    "a": {"preset": "corecube"},
    "b": {"preset": "helix", "version": 0},
    "share": 10,
    "max_questions": 100,
}


def test_an_experiment_is_started_read_and_stopped(as_user):
    alice = as_user("alice")
    response = alice("post", EXPERIMENTS, EXPERIMENT)
    assert response.status_code == 201
    started = response.json()
    assert started["a"] == {"preset": "corecube", "version": 1}
    assert started["b"] == {"preset": "helix", "version": 0}
    assert (started["is_running"], started["questions"], started["delta"], started["winner"]) == (True, 0, None, None)
    address = f"{EXPERIMENTS}/{started['id']}"
    assert alice("get", EXPERIMENTS).json() == {"experiments": [started]}
    assert alice("get", address).json() == started
    assert alice("post", EXPERIMENTS, EXPERIMENT).status_code == 409
    stopped = alice("post", f"{address}/stop", {}).json()
    assert (stopped["is_running"], stopped["ended_at"] is None) == (False, False)


def test_searches_through_the_api_take_part_where_they_are_included(as_user):
    alice = as_user("alice")
    begun = alice("post", EXPERIMENTS, {**EXPERIMENT, "share": 100, "includes_api": True}).json()
    assert alice("post", "/api/v1/search", {"query": ROLLBACK}).status_code == 200
    body = {"model": "corecube", "messages": [{"role": "user", "content": ROLLBACK}]}
    assert alice("post", "/v1/chat/completions", body).status_code == 200
    assert alice("post", "/api/v1/search", {"query": ROLLBACK, "preset": "helix"}).status_code == 200
    assert alice("get", f"{EXPERIMENTS}/{begun['id']}").json()["questions"] == 2


def test_a_thumb_through_the_api_is_credit_and_no_grade(as_user, world):
    alice = as_user("alice")
    age = {"blend.dense": 0.0, "blend.fulltext": 0.0, "blend.freshness": 1.0}
    values = PresetVersion.objects.get(preset="corecube").values
    PresetVersion.objects.create(preset="corecube", number=2, values=values | age)
    sides = {"b": {"preset": "corecube", "version": 2}, "share": 100, "includes_api": True}
    begun = alice("post", EXPERIMENTS, {**EXPERIMENT, **sides}).json()
    found = alice("post", "/api/v1/search", {"query": ROLLBACK}).json()
    for rating in (1, -1):
        rated = {"trace_id": found["trace_id"], "citation": 1, "rating": rating}
        assert alice("post", "/api/v1/feedback", rated).status_code == 204
    record = SearchRecord.objects.get(pk=found["trace_id"])
    other = {"A": "b", "B": "a"}[record.trace["interleaving"]["teams"][0][2]]
    report = alice("get", f"{EXPERIMENTS}/{begun['id']}").json()
    assert (report["with_credit"], report[f"wins_{other}"]) == (1, 1)


def test_experiments_are_for_admins(as_user):
    begun = as_user("alice")("post", EXPERIMENTS, EXPERIMENT).json()
    bob = as_user("bob")
    for method, path in (("get", ""), ("post", ""), ("get", f"/{begun['id']}"), ("post", f"/{begun['id']}/stop")):
        body = {"get": None, "post": EXPERIMENT if not path else {}}[method]
        assert bob(method, EXPERIMENTS + path, body).status_code == 403


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"max_questions": None}, 422),
        ({"share": 0}, 422),
        ({"b": {"preset": "corecube"}}, 422),
        ({"b": {"preset": "corecube", "version": 99}}, 404),
        ({"b": {"preset": "no-such"}}, 404),
        ({"ends_at": "2020-01-01T00:00:00Z"}, 422),
        ({"more": 1}, 422),
    ],
)
def test_an_invalid_experiment_is_refused(as_user, changes, status):
    alice = as_user("alice")
    assert alice("post", EXPERIMENTS, EXPERIMENT | changes).status_code == status
    assert alice("get", EXPERIMENTS).json() == {"experiments": []}
