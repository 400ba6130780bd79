"""Pages of evaluation runs."""

import json

import pytest

from retrieval.evaluation.runs import run_waiting
from retrieval.models import EvaluationRun
from tests.questions import ROLLBACK

pytestmark = pytest.mark.usefixtures("unhurried")


def page(response):
    return response.content.decode()


@pytest.fixture
def start(browse, questions):
    """Start a run as alice, measure it, and return it."""

    def started(configuration="corecube"):
        browse("alice").post("/judgments/release-questions/runs/", {"configuration": configuration})
        run_waiting()
        return EvaluationRun.objects.latest("created_at")

    return started


def test_a_run_is_started_followed_and_read(browse, questions, htmx):
    client = browse("alice")
    response = client.post("/judgments/release-questions/runs/", {"configuration": "helix"})
    address = response.headers["Location"]
    waiting = page(client.get(address))
    assert "queued: 0 of 3 cases" in waiting.lower()
    assert f'hx-get="{address}"' in waiting
    run_waiting()
    ended = client.get(address, headers=htmx)
    part = page(ended)
    assert ended.headers["HX-Refresh"] == "true"
    assert "<html" not in part
    assert "hx-get" not in part
    assert "1 of 1" in part
    listed = page(client.get("/judgments/release-questions/"))
    assert address in listed
    assert '<a href="/judgments/">Question sets</a>' in page(client.get(address))


def test_two_runs_are_compared(browse, start):
    first, second = start(), start("helix")
    shown = browse("alice").get(f"/runs/compare/?a={first.pk}&b={second.pk}")
    assert shown.context["queries"] == 3
    assert "No winner" in shown.context["verdict"]
    assert next(line.name for line in shown.context["lines"]) == "nDCG@10"
    assert [line.name for line in shown.context["lines_at"]] == ["nDCG@5", "MRR@5", "recall@5", "precision@5", "MAP@5"]
    assert shown.context["lines_at"][3].first == "0.200"
    assert "runs-scatter" in page(shown)
    other = browse("alice").get(f"/runs/compare/?a={first.pk}&b={second.pk}&k=99")
    assert other.context["lines_at"][4].name == "MAP@20"
    assert "Compare A and B" in page(browse("alice").get("/judgments/release-questions/"))


@pytest.mark.parametrize(
    ("kind", "holds"), [("json", ROLLBACK), ("csv", f"{ROLLBACK},yes,1.0,"), ("run", " Q0 "), ("qrels", " 3\n")]
)
def test_a_run_is_exported(browse, start, kind, holds):
    response = browse("alice").get(f"/runs/{start().pk}/export.{kind}")
    assert response.headers["Content-Disposition"] == f'attachment; filename="release-questions-corecube.{kind}"'
    assert holds in page(response)
    if kind == "json":
        assert json.loads(response.content)["measures"]["ndcg"] == 1.0


def test_a_run_is_cancelled_and_deleted(browse, questions):
    client = browse("alice")
    address = client.post("/judgments/release-questions/runs/", {"configuration": "corecube"}).headers["Location"]
    assert "Cancelled after 0 of 3 cases" in page(client.post(f"{address}change/", {"action": "cancel"}, follow=True))
    assert client.post(f"{address}change/", {"action": "no-such"}).status_code == 404
    client.post(f"{address}change/", {"action": "delete"})
    assert not EvaluationRun.objects.exists()


def test_a_preset_that_is_not_there_is_told(browse, questions):
    sent = {"configuration": "no-such"}
    assert "Unknown preset" in page(browse("alice").post("/judgments/release-questions/runs/", sent, follow=True))


@pytest.mark.parametrize("who", ["limited admin", "no admin"])
def test_a_run_outside_the_readers_scope_is_not_there(browse, start, world, who):
    run, own = start(), start("helix")
    world.bob.is_staff = who == "limited admin"
    world.bob.save()
    client = browse("bob")
    addresses = ["", "export.json", "export.run", "export.qrels"]
    assert {client.get(f"/runs/{run.pk}/{it}").status_code for it in addresses} == {404}
    assert client.get(f"/runs/compare/?a={run.pk}&b={own.pk}").status_code == 404
    assert client.post(f"/runs/{run.pk}/change/", {"action": "delete"}).status_code == 404
    assert str(run.pk) not in page(client.get("/judgments/release-questions/"))
    assert EvaluationRun.objects.count() == 2
