"""The dashboard and the alerts, over the metrics that are really exported and with Debian's Prometheus."""

import json
import re
import subprocess

import httpx2
import pytest

from retrieval.search.request import SearchRequest
from retrieval.search.service import search
from tests.deploy.proxies import DEPLOY, changed, free_port, program
from tests.race import until

DASHBOARD = json.loads((DEPLOY / "grafana" / "corecube.json").read_text())
RULES = (DEPLOY / "prometheus" / "corecube.rules.yml").read_text()
SUFFIXES = {"histogram": ("_bucket", "_count", "_sum"), "counter": ("_total",)}
#: Prometheus's own.
OWN = {"up"}


def queries():
    """Return the expressions of the dashboard, for all values of its variables."""
    written = [it["expr"] for panel in DASHBOARD["panels"] for it in panel["targets"]]
    values = {"$__rate_interval": "5m", "$instance": ".*", "$preset": ".*"}
    for name, value in values.items():
        written = [it.replace(name, value) for it in written]
    assert not any("$" in it for it in written)
    return written


def alerts():
    return re.findall(r"^ +expr: (.+)$", RULES, re.MULTILINE)


def named(expression):
    """Return the names of metrics: a name before a selector."""
    return set(re.findall(r"\b([a-z_]+)\{", expression))


@pytest.mark.django_db
def test_every_metric_of_the_dashboard_and_of_the_alerts_is_exported():
    from retrieval.operations.metrics import REGISTRY

    exported = {
        f"{metric.name}{suffix}" for metric in REGISTRY.collect() for suffix in SUFFIXES.get(metric.type, ("",))
    }
    variables = [it["query"] for it in DASHBOARD["templating"]["list"]]
    used = {name for it in (*queries(), *alerts(), *variables) for name in named(it)}
    assert len(used) > 15
    assert used - exported - OWN == set()


def test_every_alert_says_what_it_means_and_what_to_do():
    assert len(alerts()) == RULES.count("summary: ") == RULES.count("action: ") > 5


@pytest.mark.parametrize(
    "arguments", [("check", "rules", "corecube.rules.yml"), ("test", "rules", "corecube.rules.test.yml")]
)
def test_promtool_accepts_the_rules_and_each_fires_where_it_should(arguments):
    done = subprocess.run(
        [program("promtool"), *arguments], cwd=DEPLOY / "prometheus", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def prometheus(world, server, tmp_path):
    """Run Prometheus with our configuration; return a function that queries it."""
    command, port = program("prometheus"), free_port()
    (tmp_path / "key").write_text(world.key("alice"))
    changes = {
        "/etc/prometheus/corecube.rules.yml": str(DEPLOY / "prometheus" / "corecube.rules.yml"),
        "/etc/prometheus/corecube-key": str(tmp_path / "key"),
        "127.0.0.1:8000": server.removeprefix("http://"),
    }
    text = changed(DEPLOY / "prometheus" / "prometheus.yml", changes)
    (tmp_path / "prometheus.yml").write_text(f"global: {{scrape_interval: 1s}}\n{text}")
    options = ("--config.file=prometheus.yml", "--storage.tsdb.path=data", f"--web.listen-address=127.0.0.1:{port}")
    with (
        (tmp_path / "output").open("wb") as output,
        httpx2.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client,
        subprocess.Popen([command, *options], cwd=tmp_path, stdout=output, stderr=output) as process,
    ):

        def query(expression):
            """Return the values of an expression; None while Prometheus does not answer."""
            try:
                response = client.get("/api/v1/query", params={"query": expression})
            except httpx2.TransportError:
                assert process.poll() is None, (tmp_path / "output").read_text()
                return None
            if response.status_code == 503:
                return None
            answer = response.json()
            assert answer["status"] == "success", (expression, answer)
            return [float(it["value"][1]) for it in answer["data"]["result"]]

        try:
            yield query
        finally:
            process.terminate()


def test_prometheus_scrapes_the_server_and_understands_every_query(world, prometheus):
    search(SearchRequest(text="rollback"), principal=world.principal("bob"))
    until(lambda: prometheus('up{job="corecube"}') == [1.0], seconds=60)
    until(lambda: prometheus('sum(corecube_search_duration_seconds_count{job="corecube"}) > 0'), seconds=30)
    until(lambda: prometheus('rate(process_cpu_seconds_total{job="corecube"}[1m])'), seconds=30)
    empty = [it for it in queries() if not prometheus(it)]
    # This process has no reranker, and nothing was refused before the first scrape.
    assert all("rerank_breaker" in it for it in empty), empty
    assert prometheus("ALERTS") == []
