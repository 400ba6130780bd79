"""Two web servers and two workers, each with its own data directory: they share PostgreSQL, Redis and a bucket."""

import contextlib
import re
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from django.conf import settings

from tests.deploy.proxies import free_port
from tests.environment import environment_of, link_downloads
from tests.installation import Observer
from tests.pooler import answers
from tests.postgres_server import running_server
from tests.race import until
from tests.redis_server import running_redis
from tests.s3_server import s3_admin, s3_server

_PASSWORD = "wonderland-2026"
_FILLED = f"""
from corecube.models import ApiKey, Compartment, Connection, Grant, User
from tests.unhurried import without_deadlines
alice = User.objects.create_superuser("alice", password={_PASSWORD!r})
compartment = Compartment.objects.create(slug="engineering", name="Engineering")
Grant.objects.create(user=alice, compartment=compartment, clearance=3)
Connection.objects.create(slug="inbox", name="Inbox", kind="upload", compartment=compartment)
without_deadlines()
print(ApiKey.issue(user=alice, name="all")[1], ApiKey.issue(user=alice, name="slow")[1])
ApiKey.objects.filter(name="slow").update(requests_per_minute=2)
"""
_WEB = ("uvicorn", "corecube.asgi:application", "--no-access-log", "--no-proxy-headers", "--port")
_WORKER = ("celery", "-A", "corecube", "worker", "--pool", "solo")


def start(environment, *command):
    """Start a module of Python as a process of the installation; what it says is in its data directory."""
    with (Path(environment["CORECUBE_VAR_DIR"]) / f"{command[0]}.out").open("wb") as output:
        return subprocess.Popen(
            [sys.executable, "-m", *command], cwd=settings.BASE_DIR, env=environment, stdout=output, stderr=output
        )


@dataclass
class Machines:
    """Everything that runs."""

    environments: list
    webs: list  #: A client of each web server.
    workers: list
    observe: Observer
    keys: list

    def said(self, number, what):
        return (Path(self.environments[number]["CORECUBE_VAR_DIR"]) / f"{what}.out").read_text()


@pytest.fixture(scope="module")
def machines():
    with contextlib.ExitStack() as stack:
        redis, database = stack.enter_context(running_redis()), stack.enter_context(running_server())
        bucket = stack.enter_context(s3_server())
        stack.enter_context(s3_admin(bucket)).create_bucket(Bucket="uploads")
        shared = {
            "DATABASE_URL": database.url("corecube"),
            "REDIS_URL": redis.url,
            "SECRET_KEY": "the same on both machines, and long enough",
            "CORECUBE_UPLOADS_TO": "s3://uploads/corecube",
            "CORECUBE_UPLOADS_S3_ENDPOINT": bucket,
            "CORECUBE_UPLOADS_S3_ACCESS_KEY": "key",
            "CORECUBE_UPLOADS_S3_SECRET_KEY": "secret",
            # The test is not about these, which take processor time.
            **dict.fromkeys(("CORECUBE_BM25", "CORECUBE_VECTORS", "CORECUBE_WARM_UP"), "no"),
        }
        environments = []
        for _ in range(2):
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="corecube-test-")))
            link_downloads(folder)
            environments.append(environment_of(folder, **shared))
        ports = [free_port(), free_port()]
        running = [start(it, *_WEB, str(port)) for it, port in zip(environments, ports, strict=True)]
        workers = [start(it, *_WORKER) for it in environments]
        observe = Observer(environments[0])
        try:
            keys = observe(_FILLED).split()
            until(lambda: all(map(answers, ports)), seconds=60)
            clients = [stack.enter_context(client_of(port)) for port in ports]
            yield Machines(environments, clients, workers, observe, keys)
        finally:
            for process in (*running, *workers):
                process.kill()
                process.wait()
            observe.end()


def client_of(port):
    address = f"http://127.0.0.1:{port}"
    return httpx2.Client(base_url=address, headers={"Origin": address}, timeout=30)


def sign_in(client, password):
    """Return the answer to a password."""
    token = re.search('name="csrfmiddlewaretoken" value="([^"]+)"', client.get("/login/").text)[1]
    sent = {"csrfmiddlewaretoken": token, "username": "alice", "password": password}
    return client.post("/login/", data=sent)


def test_what_is_uploaded_at_one_machine_is_taken_in_and_found_at_the_other(machines):
    first, second = machines.webs
    bearer = {"Authorization": f"Bearer {machines.keys[0]}"}
    alive = "from retrieval.models import Worker; print(Worker.objects.count())"
    until(lambda: machines.observe(alive) == "2\n", seconds=60)
    machines.workers[0].send_signal(signal.SIGTERM)
    machines.workers[0].wait(timeout=30)
    # Only the second machine has a worker now.
    assert machines.observe(alive) == "1\n"
    files = {"files": ("plan.md", b"# Plan\n\nThe codeword is tangerine.")}
    assert first.post("/api/v1/connections/inbox/uploads", files=files, headers=bearer).status_code == 202

    def synced():
        return second.get("/api/v1/connections/inbox/sync", headers=bearer).json()["sync"]["status"] == "done"

    until(synced, seconds=60)
    answer = second.post("/api/v1/search", json={"query": "codeword", "preset": "corecube"}, headers=bearer)
    assert [it["title"] for it in answer.json()["hits"]] == ["Plan"]
    for environment in machines.environments:
        assert not (Path(environment["CORECUBE_VAR_DIR"]) / "uploads").exists()


def test_a_sign_in_holds_on_both_and_failures_count_together(machines):
    first, second = machines.webs
    assert sign_in(first, _PASSWORD).status_code == 302
    second.cookies = first.cookies
    assert second.get("/explorer/").status_code == 200
    for client in machines.webs:
        client.cookies.clear()
    assert second.get("/explorer/").status_code == 302
    for number in range(5):
        assert sign_in(machines.webs[number % 2], "wrong").status_code == 200
    refused = [sign_in(client, _PASSWORD).status_code for client in machines.webs]
    assert refused == [429, 429]


def test_the_rate_of_a_key_counts_both(machines):
    bearer = {"Authorization": f"Bearer {machines.keys[1]}"}
    statuses = [it.get("/api/v1/connections", headers=bearer).status_code for it in (*machines.webs, *machines.webs)]
    assert statuses == [200, 200, 429, 429]


@pytest.mark.parametrize("command", [(*_WEB, "0"), _WORKER])
def test_a_machine_with_another_secret_key_does_not_start_and_says_why(machines, command):
    other = {**machines.environments[1], "SECRET_KEY": "another one, which the machine made for itself"}
    process = start(other, *command)
    assert process.wait(timeout=60) != 0
    said = machines.said(1, command[0])
    assert "SECRET_KEY differs from that of" in said
    assert "Set the same SECRET_KEY on every machine" in said
    assert "another one" not in said
