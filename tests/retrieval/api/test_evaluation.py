"""Evaluation over HTTP."""

import pytest

from corecube.models import ApiKey
from corecube.scope import Sensitivity
from retrieval.evaluation.runs import run_waiting
from tests.questions import ROLLBACK

pytestmark = pytest.mark.usefixtures("unhurried")

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
    assert send("get", "/api/v1/evaluation/sets").json()["question_sets"] == [
        {"slug": "release-questions", "name": "Release questions", "cases": 3}
    ]
    first, second = started(send), started(send, preset="helix", overrides={}, name="the other one")
    run_waiting()
    read = send("get", f"{RUNS}/{first}").json()
    assert (read["status"], read["measures"]["ndcg"], read["results"][0]["query"]) == ("done", 1.0, ROLLBACK)
    listed = send("get", f"{RUNS}?question_set=release-questions").json()["runs"]
    assert [(it["id"], it["name"]) for it in listed] == [(second, "the other one"), (first, "")]
    compared = send("get", f"/api/v1/evaluation/compare?first={first}&second={second}").json()
    difference = compared["differences"]["ndcg"]
    assert {name: difference[name] for name in ("queries", "p_value", "wins", "ties", "losses", "high")} == {
        "queries": 2,
        "p_value": 1.0,
        "wins": 0,
        "ties": 1,
        "losses": 1,
        "high": 0.0,
    }
    assert difference["low"] == 2 * difference["mean"] < 0
    assert send("delete", f"{RUNS}/{first}").status_code == 204
    assert send("get", f"{RUNS}/{first}").status_code == 404


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
    addresses = (
        "/api/v1/evaluation/sets",
        RUNS,
        f"{RUNS}/{run}",
        f"/api/v1/evaluation/compare?first={run}&second={run}",
    )
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
