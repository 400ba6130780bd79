"""/metrics, for admins."""

import re
from dataclasses import replace

import pytest

from corecube.errors import OverloadedError
from retrieval.engine.admission import Admission, Surroundings
from retrieval.engine.admission_ladder import Refusal, Rung
from retrieval.operations.metrics import Metric, exposition, load_metrics
from retrieval.search import runtime


def figures(text):
    """Return the values of an exposition by name, its labels in it; what no line may look like fails."""
    lines = text.splitlines()
    assert all(
        re.fullmatch(r'# (HELP|TYPE) corecube_\w+ .+|corecube_\w+(\{\w+="\w+"\})? [0-9.e+]+', it) for it in lines
    )
    return {name: float(value) for name, value in (it.split() for it in lines if not it.startswith("#"))}


def test_figures_as_prometheus_reads_them():
    text = exposition(
        (
            Metric("corecube_a", "gauge", "What a is.", 1.5),
            Metric("corecube_b_total", "counter", "What b is.", label="reason", by_label={"x": 2, "y": 0}),
        )
    )
    assert text == (
        "# HELP corecube_a What a is.\n# TYPE corecube_a gauge\ncorecube_a 1.5\n"
        "# HELP corecube_b_total What b is.\n# TYPE corecube_b_total counter\n"
        'corecube_b_total{reason="x"} 2\ncorecube_b_total{reason="y"} 0\n'
    )


def test_every_reason_is_there_from_the_start():
    load = replace(Admission().load(), rung=Rung.FULL, refused={Refusal.QUEUE: 3})
    found = figures(exposition(load_metrics(load)))
    refused = {name: value for name, value in found.items() if "queries_refused" in name}
    assert len(refused) == len(Refusal)
    assert refused['corecube_queries_refused_total{reason="queue"}'] == 3
    assert (found["corecube_ladder_rung"], found["corecube_pool_connections"]) == (5, 96)


def test_what_is_refused_is_counted(client, world, monkeypatch):
    admission = Admission(world=Surroundings(active=lambda: 90))
    monkeypatch.setattr(runtime, "admission", lambda: admission)
    with pytest.raises(OverloadedError), admission.query(budget_seconds=60):
        pass
    client.force_login(world.alice)
    found = figures(client.get("/metrics").content.decode())
    assert found['corecube_queries_refused_total{reason="hard_reject"}'] == 1
    assert found["corecube_pool_connections_at_work"] == 90
    assert 0 < found["corecube_memory_used_bytes"] < found["corecube_memory_limit_bytes"]
    assert 2 <= found["corecube_ingest_calls_allowed"] <= found["corecube_ingest_calls_configured"]


def test_an_admins_key_opens_it(client, world):
    response = client.get("/metrics", headers={"Authorization": f"Bearer {world.key('alice')}"})
    assert (response.status_code, response.headers["Content-Type"]) == (
        200,
        "text/plain; version=0.0.4; charset=utf-8",
    )
    assert response.headers["Cache-Control"].startswith("max-age=0")


@pytest.mark.parametrize("name", ["bob", "charlie"])
def test_for_others_it_does_not_exist(client, world, name):
    headers = {"Authorization": f"Bearer {world.key(name)}"}
    assert client.get("/metrics", headers=headers).status_code == 404
    client.force_login(getattr(world, name))
    assert client.get("/metrics").status_code == 404


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer cc_wrong"}, {"Authorization": "junk"}])
def test_for_strangers_neither(client, db, headers):
    assert client.get("/metrics", headers=headers).status_code == 404


def test_a_key_over_its_rate_is_told_so(client, world):
    from corecube.models import ApiKey

    secret = world.key("alice")
    ApiKey.objects.update(requests_per_minute=1)
    statuses = [client.get("/metrics", headers={"Authorization": f"Bearer {secret}"}).status_code for _ in range(3)]
    assert 429 in statuses
