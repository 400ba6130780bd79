"""No client of ours connects to a link-local or metadata address, whoever named it."""

import ast
import ipaddress
import logging
import socket
from contextlib import closing
from pathlib import Path
from threading import Thread

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings

from corecube import env
from corecube.connectors.git.clients import GuardedGitClient, Meter
from corecube.connectors.http import HttpClient, HttpLimits
from corecube.connectors.network import AddressGuard, checked_url
from corecube.connectors.places import place_at
from corecube.connectors.s3 import S3Connector
from corecube.connectors.setup import SourceSetup
from corecube.connectors.types import ItemError
from corecube.metadata_addresses import is_refused, names_refused
from corecube.oidc.provider import get_json
from retrieval.admin.language_models import InvalidModelError, require_right
from retrieval.encoders.bounded_http import BoundedClient, ServiceFaultError
from retrieval.encoders.fetch import HubFile, hub_answers
from retrieval.llm import local_servers
from retrieval.llm.service import ModelService
from retrieval.llm.trial import try_model
from retrieval.models import LanguageModel

ROOT = Path(__file__).parents[2]
#: Private networks are allowed to it as far as anybody can allow them.
TRUSTING = AddressGuard(
    networks=(ipaddress.ip_network("0.0.0.0/0"), ipaddress.ip_network("::/0")), trusted_hosts=frozenset({"cloud.test"})
)


@pytest.mark.parametrize(
    "address",
    [
        *("169.254.169.254", "169.254.0.1", "168.63.129.16", "100.100.100.200"),
        *("fe80::1", "febf::1", "fd00:ec2::254", "fd20:ce::254", "fd00:c1::a9fe:a9fe", "fd00:42::42"),
        *("::ffff:169.254.169.254", "::169.254.169.254", "::ffff:0:169.254.169.254"),
        *("64:ff9b::169.254.169.254", "64:ff9b:1::168.63.129.16", "2002:a9fe:a9fe::1", "fd12::5efe:169.254.169.254"),
        "2001:0:a9fe:a9fe::1",
    ],
)
def test_an_address_is_known_in_every_form_that_stands_for_it(address):
    assert is_refused(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "address", ["10.0.0.1", "127.0.0.1", "100.100.100.201", "8.8.8.8", "::1", "fd00::1", "2a00::1"]
)
def test_other_addresses_are_not_refused(address):
    assert not is_refused(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "host",
    [
        *("2852039166", "0xA9FEA9FE", "0251.0376.0251.0376", "169.254.43518", "169.254.169.254."),
        *("[fe80::1%25eth0]", "fe80::1%eth0", "[::ffff:a9fe:a9fe]"),
    ],
)
def test_a_host_is_known_in_every_notation(host):
    assert names_refused(host)


@pytest.mark.parametrize("host", ["", "example.org", "127.0.0.1", "[::1]", "1", "\u0661.1.1.1"])
def test_a_name_is_not_taken_for_an_address(host):
    assert not names_refused(host)


def test_no_socket_connects_or_sends_there():
    for kind, family, address in (
        (socket.SOCK_STREAM, socket.AF_INET, ("169.254.169.254", 80)),
        (socket.SOCK_STREAM, socket.AF_INET, ("2852039166", 80)),
        (socket.SOCK_STREAM, socket.AF_INET6, ("fe80::1", 80, 0, 1)),
        (socket.SOCK_STREAM, socket.AF_INET6, ("::ffff:169.254.169.254", 80, 0, 0)),
    ):
        with socket.socket(family, kind) as probe, pytest.raises(PermissionError, match="metadata service"):
            probe.connect(address)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, pytest.raises(PermissionError):
        probe.sendto(b"x", ("169.254.169.254", 53))


def test_other_sockets_connect_as_ever(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).close()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        server.listen()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(tmp_path / "socket"))


def _http():
    with HttpClient(HttpLimits(max_bytes=1000, attempts=1), TRUSTING) as client:
        client.get("http://cloud.test/")


def _s3():
    config = {"bucket": "bucket", "endpoint": "http://cloud.test", "addressing": "path"}
    setup = SourceSetup(config=config, state=Path("/nowhere"), uploads=Path("/nowhere"), max_bytes=1)
    source = S3Connector.from_setup(setup)
    with closing(source._client):
        source.check()


def _backup():
    named = {"ENDPOINT": "http://cloud.test", "ACCESS_KEY": "key", "SECRET_KEY": "secret"}
    with override_settings(**{f"CORECUBE_BACKUP_S3_{name}": value for name, value in named.items()}):
        place_at("s3://bucket/backups").read("manifest")


def _service():
    with closing(BoundedClient()) as client:
        client.post("http://cloud.test/", b"{}", timeout_seconds=5)


def _language_model():
    service = ModelService(name="m", base_url="http://cloud.test/v1", model="m", max_retries=0)
    assert not try_model(service).problem


def _hub(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://cloud.test")
    assert hub_answers(HubFile("owner/model", "model.onnx", "main"))


#: What asks the network in each module that imports a library for it.
CLIENTS = {
    "corecube/connectors/network.py": _http,
    "corecube/connectors/http.py": _http,
    "corecube/connectors/git/clients.py": lambda: GuardedGitClient(
        "http://cloud.test/r.git", credentials={}, meter=Meter(1000)
    ).get_refs(b""),
    "corecube/connectors/s3.py": _s3,
    "corecube/connectors/places.py": _backup,
    "corecube/oidc/provider.py": lambda: get_json("http://cloud.test/", trusted_host="cloud.test"),
    "corecube/oidc/backend.py": lambda: get_json("http://cloud.test/", trusted_host="cloud.test", form={}),
    "retrieval/encoders/bounded_http.py": _service,
    "retrieval/encoders/fetch.py": _hub,
    "retrieval/llm/transport.py": _language_model,
    "retrieval/llm/local_servers.py": lambda: local_servers._read("http://cloud.test/v1/models"),
    "retrieval/llm/language_model.py": _language_model,
}
_LIBRARIES = {
    "botocore",
    "httpcore",
    "httpcore2",
    "httpx",
    "httpx2",
    "huggingface_hub",
    "openai",
    "requests",
    "urllib3",
}
_MODULES = {"urllib.request", "http.client", "ftplib", "smtplib"}


def _imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def test_every_module_that_asks_the_network_is_tried_here():
    """The load generators of the benchmark speak to their own server."""
    found = {
        str(path.relative_to(ROOT))
        for app in ("corecube", "retrieval", "explorer")
        for path in (ROOT / app).rglob("*.py")
        for name in _imports(path)
        if name.split(".")[0] in _LIBRARIES or name in _MODULES
    }
    assert {it for it in found if "/bench/" not in it} <= CLIENTS.keys()


@pytest.mark.parametrize("module", CLIENTS)
def test_a_name_that_leads_there_is_refused_when_a_client_connects(module, monkeypatch, caplog):
    answer = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("169.254.169.254", 80))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answer)
    monkeypatch.setattr("time.sleep", lambda _: None)
    client = CLIENTS[module]
    with caplog.at_level(logging.WARNING), pytest.raises(Exception) as caught:  # noqa: PT011 -- each has its own
        client(monkeypatch) if client is _hub else client()
    said = [str(it) for it in _chain(caught.value)]
    assert "address.refused host=169.254.169.254" in caplog.text or any("metadata service" in it for it in said)


def _chain(error):
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def test_a_redirect_there_is_refused(monkeypatch):
    guard = AddressGuard(trusted_hosts=frozenset({"127.0.0.1"}))
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def answer():
            stream, _ = server.accept()
            with stream:
                stream.recv(4096)
                stream.sendall(b"HTTP/1.1 302 Found\r\nLocation: http://2852039166/\r\nContent-Length: 0\r\n\r\n")

        thread = Thread(target=answer)
        thread.start()
        with HttpClient(HttpLimits(max_bytes=1000, attempts=1), guard) as client, pytest.raises(ItemError) as caught:
            client.get(f"http://127.0.0.1:{port}/")
        thread.join()
    assert caught.value.reason == "private_address"


def test_no_address_of_a_connector_names_one():
    for url in (
        "http://169.254.169.254/latest",
        "https://[fe80::1]/",
        "http://0xA9FEA9FE/",
        "http://\uff11\uff16\uff19.254.169.254/",
    ):
        with pytest.raises(ItemError) as caught:
            checked_url(url)
        assert caught.value.reason == "private_address"


def test_a_setting_that_names_one_stops_the_start(monkeypatch):
    monkeypatch.setenv("CORECUBE_LLM_URL", "http://169.254.169.254/v1")
    with pytest.raises(ImproperlyConfigured, match="CORECUBE_LLM_URL is not allowed"):
        env.url("CORECUBE_LLM_URL")


def test_a_language_model_that_is_at_one_is_not_stored(db):
    model = LanguageModel(slug="m", name="M", base_url="http://[::ffff:169.254.169.254]/v1", model="m")
    with pytest.raises(InvalidModelError) as caught:
        require_right(model, "")
    assert "metadata service" in caught.value.problems["base_url"]


def test_a_service_that_is_refused_says_no_more_than_that_it_cannot_be_reached(monkeypatch):
    with closing(BoundedClient()) as client, pytest.raises(ServiceFaultError, match="cannot be reached"):
        client.post("http://169.254.169.254/", b"{}", timeout_seconds=5)
