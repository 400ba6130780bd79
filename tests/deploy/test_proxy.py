"""The files for nginx and Caddy, with the real proxies in front of a real server."""

import json
import re
import socket
import subprocess

import pytest

from corecube.models import AuditEvent, Connection
from retrieval.answers.conversations.files import MAX_BYTES, MAX_FILES
from retrieval.models import LanguageModel
from tests.deploy.proxies import DEPLOY, program, running_proxy
from tests.fake_llm import FakeLLM, Fault
from tests.race import until

# WhiteNoise serves files by iterators that are not asynchronous.
pytestmark = pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume synchronous iterators:Warning")

CLIENT = "127.0.0.2"
UPLOADS = "/api/v1/connections/inbox/uploads"
PLOTLY = "vendor/plotly-basic-4.1.1.99784e3abfb0.min.js"


@pytest.fixture
def trusting(monkeypatch):
    """Trust a proxy on this machine, as CORECUBE_TRUSTED_PROXIES=127.0.0.1 does."""
    from corecube.asgi import application

    monkeypatch.setattr(application, "trusted_hosts", type(application.trusted_hosts)(["127.0.0.1"]))


@pytest.fixture(params=["nginx", "caddy"])
def proxy(request, trusting, server, tmp_path):
    """Run each proxy in front of the server that trusts it."""
    with running_proxy(request.param, tmp_path, server) as running:
        yield running


@pytest.fixture
def inbox(world):
    return Connection.objects.create(slug="inbox", name="Inbox", kind="upload", compartment=world.runbooks.compartment)


def send(proxy, world, count):
    """Upload a text file of so many bytes."""
    bearer = {"Authorization": f"Bearer {world.key('alice')}"}
    with proxy.client(headers=bearer) as client:
        return client.post(UPLOADS, files={"files": ("notes.txt", b"x" * count)})


def test_the_first_words_of_an_answer_come_before_the_last_are_written_and_leaving_stops_the_model(proxy, world):
    asked = {"model": "corecube", "messages": [{"role": "user", "content": "rollback"}], "stream": True}
    headers = {"Authorization": f"Bearer {world.key('bob')}", "Accept-Encoding": "gzip"}
    with FakeLLM(fault=Fault.SLOW_DRIP) as llm, proxy.client(headers=headers) as client:
        # Less than a buffer of a proxy.
        llm.says("word " * 12)
        LanguageModel.objects.create(slug="slow", name="Slow", base_url=llm.url, model="m", is_default=True)
        with client.stream("POST", "/v1/chat/completions", json=asked) as answer:
            assert "content-encoding" not in answer.headers
            for line in answer.iter_lines():
                if line.startswith("data: {") and json.loads(line[6:])["choices"][0]["delta"].get("content"):
                    break
            assert llm.at_once == 1
        until(lambda: llm.cut_off == 1)


def test_a_file_over_the_usual_limit_of_proxies_passes(proxy, world, inbox):
    assert send(proxy, world, 3 * 2**20).status_code == 202


def test_a_file_over_the_products_limit_gets_the_products_words(proxy, world, inbox, settings):
    answer = send(proxy, world, settings.CORECUBE_MAX_FILE_BYTES + 1)
    assert answer.status_code == 422
    assert "more than 50 MB" in answer.json()["error"]["message"]


def test_nginx_refuses_a_request_over_the_limit_before_it_is_read(trusting, server, tmp_path):
    head = f"POST /api/v1/search HTTP/1.1\r\nHost: x\r\nContent-Length: {MAX_FILES * MAX_BYTES + 2 * 2**20}\r\n\r\n"
    with (
        running_proxy("nginx", tmp_path, server) as proxy,
        socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as plain,
        proxy.trust.wrap_socket(plain, server_hostname="127.0.0.1") as secure,
    ):
        secure.sendall(head.encode())
        assert secure.recv(100).startswith(b"HTTP/1.1 413 ")


def test_a_client_has_its_own_address_and_cannot_choose_it(proxy, people):
    forged = {"X-Forwarded-For": "6.6.6.6", "X-Forwarded-Proto": "http", "Forwarded": "for=6.6.6.6"}
    with proxy.client(source=CLIENT, headers=forged) as client:
        token = re.search('name="csrfmiddlewaretoken" value="([^"]+)"', client.get("/login/").text)[1]
        sent = {"csrfmiddlewaretoken": token, "username": "bob", "password": "wrong"}
        # Django compares the origin with the scheme that the proxy reports.
        answer = client.post("/login/", data=sent, headers={"Origin": proxy.address})
    assert answer.status_code == 200
    assert AuditEvent.objects.get(action="session.refused").details["address"] == CLIENT


def test_addresses_in_answers_are_those_of_the_proxy(proxy, people):
    with proxy.client(headers={"X-Forwarded-Proto": "http"}) as client:
        answer = client.post("/mcp", json={})
    assert answer.status_code == 401
    assert f'resource_metadata="{proxy.address}/' in answer.headers["WWW-Authenticate"]


def test_every_security_header_comes_once(proxy, people):
    with proxy.client() as client:
        headers = client.get("/login/").headers
    names = ("Content-Security-Policy", "X-Frame-Options", "Referrer-Policy", "X-Content-Type-Options")
    for name in (*names, "Strict-Transport-Security", "X-Request-Id"):
        assert len(headers.get_list(name)) == 1, name


def test_pages_are_compressed_and_what_is_compressed_already_stays(proxy, people):
    with proxy.client(headers={"Accept-Encoding": "gzip"}) as client:
        page, script = client.get("/login/"), client.get(f"/static/{PLOTLY}")
    assert page.headers.get_list("Content-Encoding") == script.headers.get_list("Content-Encoding") == ["gzip"]
    assert "</html>" in page.text
    assert script.content == (DEPLOY.parent / "static" / PLOTLY).read_bytes()


def test_the_log_of_nginx_has_the_id_of_the_request_and_no_query(trusting, server, people, tmp_path):
    with running_proxy("nginx", tmp_path, server) as proxy, proxy.client() as client:
        answer = client.get("/explorer/?q=zanzibar", headers={"X-Request-Id": "mine"})
        until((tmp_path / "corecube.log").read_text)
        log = (tmp_path / "corecube.log").read_text()
    assert answer.headers["X-Request-Id"] in log
    assert "mine" not in log
    assert "zanzibar" not in log


@pytest.mark.parametrize("path", ["nginx/corecube.conf", "caddy/Caddyfile"])
def test_a_request_may_be_as_large_as_the_largest_that_the_product_takes(path):
    limit = re.search(r"(?:client_max_body_size|max_size) (\d+)", (DEPLOY / path).read_text())[1]
    assert int(limit) * 2**20 == MAX_FILES * MAX_BYTES + 2**20


def test_nginx_waits_longer_than_the_longest_answer():
    from retrieval.api.evidence import EvidenceIn

    longest = LanguageModel._meta.get_field("timeout_seconds").validators[-1].limit_value
    budget = EvidenceIn.model_json_schema()["properties"]["budget_ms"]["maximum"] / 1000
    waits = int(re.search(r"proxy_read_timeout (\d+)s", (DEPLOY / "nginx" / "corecube.conf").read_text())[1])
    assert waits > max(longest, budget)


def test_caddy_accepts_the_file_as_it_is(tmp_path):
    command = [program("caddy"), "validate", "--adapter", "caddyfile", "--config", str(DEPLOY / "caddy" / "Caddyfile")]
    folders = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    done = subprocess.run(command, env=folders, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "not formatted" not in done.stderr
