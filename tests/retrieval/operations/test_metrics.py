"""/metrics, for admins."""

from dataclasses import replace

import pytest

from corecube.errors import OverloadedError
from retrieval.engine.admission import Admission, ProcessHooks
from retrieval.engine.admission_ladder import Refusal, Rung
from retrieval.operations.metrics import load_metrics
from retrieval.search import runtime
from retrieval.search.request import SearchRequest
from retrieval.search.service import search
from tests.retrieval.operations.scrapes import exposition, samples


def test_every_reason_is_there_from_the_start():
    load = replace(Admission().load(), rung=Rung.FULL, refused={Refusal.QUEUE: 3})
    found = samples(exposition(load_metrics(load)))
    refused = {name: value for name, value in found.items() if "queries_refused_total" in name}
    assert len(refused) == len(Refusal)
    assert refused["corecube_queries_refused_total{reason=queue}"] == 3
    assert (found["corecube_ladder_rung"], found["corecube_pool_connections"]) == (5, 96)


def test_what_is_refused_is_counted(client, world, monkeypatch):
    admission = Admission(world=ProcessHooks(active=lambda: 90))
    monkeypatch.setattr(runtime, "admission", lambda: admission)
    with pytest.raises(OverloadedError), admission.query(budget_seconds=60):
        pass
    client.force_login(world.alice)
    found = samples(client.get("/metrics").content.decode())
    assert found["corecube_queries_refused_total{reason=hard_reject}"] == 1
    assert found["corecube_pool_connections_active"] == 90
    assert 0 < found["corecube_memory_used_bytes"] < found["corecube_memory_limit_bytes"]
    assert 2 <= found["corecube_ingest_calls_allowed"] <= found["corecube_ingest_calls_configured"]


def test_latencies_are_counted_by_preset_and_by_stage(client, world):
    client.force_login(world.alice)
    before = samples(client.get("/metrics").content.decode())
    outcome = search(SearchRequest(text="rollback", preset="corecube"), principal=world.principal("alice"))
    after = samples(client.get("/metrics").content.decode())

    def added(name):
        return after[name] - before.get(name, 0.0)

    duration, stage = "corecube_search_duration_seconds", "corecube_search_stage_duration_seconds"
    assert added(f"{duration}_count{{preset=corecube}}") == 1
    assert added(f"{duration}_sum{{preset=corecube}}") == pytest.approx(outcome.seconds)
    assert added(f"{duration}_bucket{{le=+Inf,preset=corecube}}") == 1
    for span in outcome.trace:
        assert added(f"{stage}_count{{preset=corecube,stage={span.stage}}}") == 1
        assert added(f"{stage}_sum{{preset=corecube,stage={span.stage}}}") == pytest.approx(span.seconds)
    assert not [name for name in after if "_created" in name]


def test_a_scraper_that_asks_for_openmetrics_gets_it(client, world):
    client.force_login(world.alice)
    response = client.get("/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"})
    assert response.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
    assert response.content.endswith(b"# EOF\n")


def test_an_admins_key_opens_it(client, world):
    response = client.get("/metrics", headers={"Authorization": f"Bearer {world.key('alice')}"})
    assert (response.status_code, response.headers["Content-Type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
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


def test_every_metric_is_in_the_manual(client, world):
    from pathlib import Path

    client.force_login(world.alice)
    search(SearchRequest(text="rollback", preset="corecube"), principal=world.principal("alice"))
    manual = (Path(__file__).parents[3] / "docs/guides/monitoring.md").read_text()
    lines = client.get("/metrics").content.decode().splitlines()
    names = {line.split()[2] for line in lines if line.startswith("# TYPE corecube_")}
    short = {"corecube_pool_connections_configured": "_configured", "corecube_pool_connections_active": "_active"}
    assert len(names) > 25
    assert [name for name in sorted(names) if f"`{short.get(name, name)}`" not in manual] == []
