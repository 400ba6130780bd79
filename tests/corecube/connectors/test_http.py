import gzip
import ipaddress
import socket
import ssl
import time
import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from corecube import version
from corecube.connectors.http import HttpClient, HttpLimits, retry_after
from corecube.connectors.network import AddressGuard
from corecube.connectors.types import ItemError
from corecube.version import VERSION

ROOT = Path(__file__).parents[3]
LOCAL = AddressGuard(networks=(ipaddress.ip_network("127.0.0.1/32"),))


@pytest.fixture
def client():
    """Return a function that makes a client which does not really wait; `client.waits` are its waits."""
    made = []

    def make(guard=LOCAL, limits=None, **options):
        waits = []
        limits = HttpLimits(**{"max_bytes": 1000, "timeout_seconds": 2, **(limits or {})})
        it = HttpClient(limits, guard, sleep=waits.append, uniform=lambda _, high: high, **options)
        it.waits = waits
        made.append(it)
        return it

    yield make
    for it in made:
        it.close()


def refusal(call, *args):
    with pytest.raises(ItemError) as caught:
        call(*args)
    return caught.value.reason


def test_a_page_comes_with_its_facts(site, client):
    site.add("/a", "text", Content_Type="Text/HTML; charset=Latin-1", Last_Modified="Fri, 02 Jan 2026 03:04:05 GMT")
    answer = client().get(f"{site.url}/a")
    assert (answer.status, answer.body, answer.media_type) == (200, b"text", "text/html")
    assert answer.modified_at() == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_requests_name_corecube_and_its_version(site, client):
    client().get(f"{site.url}/")
    ((_, headers),) = site.requests
    assert headers["User-Agent"] == f"CoreCube/{VERSION}"
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    assert tools["setuptools"]["dynamic"]["version"] == {"attr": f"{version.__name__}.VERSION"}


def test_a_compressed_page_is_opened(site, client):
    site.add("/a", gzip.compress(b"text"), Content_Encoding="gzip")
    assert client().get(f"{site.url}/a").body == b"text"


def test_a_gzip_bomb_is_refused_at_the_limit(site, client):
    site.add("/a", gzip.compress(bytes(50_000_000), 1), Content_Encoding="gzip")
    assert refusal(client(limits={"max_bytes": 1_000_000}).get, f"{site.url}/a") == "too_large"


@pytest.mark.parametrize(
    ("body", "encoding"), [(b"\x1f\x8bnot", "gzip"), (gzip.compress(b"text", mtime=0)[:-9], "gzip"), (b"x", "br")]
)
def test_damaged_or_unknown_compression_is_refused(site, client, body, encoding):
    site.add("/a", body, Content_Encoding=encoding)
    assert refusal(client().get, f"{site.url}/a") == "corrupt"


def test_a_body_is_not_read_beyond_the_limit_whatever_the_server_announces(site, client):
    sent = []

    def endless():
        while True:
            sent.append(1)
            yield b"x" * 100_000

    site.add("/announced", b"x" * 1001)
    site.add("/endless", endless())
    assert refusal(client().get, f"{site.url}/announced") == "too_large"
    assert refusal(client().get, f"{site.url}/endless") == "too_large"
    assert len(sent) < 1000


@pytest.mark.parametrize("where", ["body", "head"])
def test_a_slow_drip_ends_with_the_request_time(site, client, serve, where):
    def drip():
        while True:
            time.sleep(0.05)
            yield b"x"

    if where == "body":
        site.add("/a", drip())
        url = f"{site.url}/a"
    else:
        url = dripping_head()
    started = time.monotonic()
    assert refusal(client(limits={"request_seconds": 0.4}).get, url) == "timeout"
    assert time.monotonic() - started < 2


def dripping_head():
    """Return the address of a server that never ends its headers."""
    from threading import Thread

    listening = socket.create_server(("127.0.0.1", 0))

    def drip():
        connection, _ = listening.accept()
        with listening, connection:
            connection.sendall(b"HTTP/1.1 200 OK\r\n")
            try:
                while True:
                    time.sleep(0.05)
                    connection.sendall(b"X-A: 1\r\n")
            except OSError:
                return

    Thread(target=drip, daemon=True).start()
    return f"http://127.0.0.1:{listening.getsockname()[1]}/"


def test_a_busy_server_is_asked_again_after_the_time_it_names(site, client):
    answers = [(503, {"Retry-After": "7"}, b""), (429, {}, b""), (200, {}, b"text")]
    site.pages["/a"] = lambda *_: answers.pop(0)
    it = client()
    assert it.get(f"{site.url}/a").body == b"text"
    # 7 s and a quarter of the jitter of 1 s; then the jitter of the second attempt, 2 s.
    assert it.waits == [7.25, 2.0]


def test_a_server_that_stays_busy_is_given_up_after_four_attempts(site, client):
    site.add("/a", status=503)
    it = client()
    assert it.get(f"{site.url}/a").status == 503
    assert (len(site.requests), it.waits) == (4, [1.0, 2.0, 4.0])


def test_a_server_that_asks_for_an_hour_is_not_waited_for(site, client):
    site.add("/a", status=429, Retry_After="3600")
    it = client()
    assert it.get(f"{site.url}/a").status == 429
    assert (len(site.requests), it.waits) == (1, [])


def test_other_errors_are_not_asked_again(site, client):
    site.add("/a", status=500)
    assert client().get(f"{site.url}/a").status == 500
    assert len(site.requests) == 1


def test_a_connection_that_breaks_is_tried_again(site, client):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        it = client()
        assert refusal(it.get, f"http://127.0.0.1:{closed.getsockname()[1]}/") == "unreachable"
    assert len(it.waits) == 3


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("120", 120.0), ("Fri, 02 Jan 2026 00:02:00 GMT", 120.0), ("Thu, 01 Jan 2026 00:00:00 GMT", 0.0), ("soon", None)],
)
def test_retry_after_is_seconds_or_a_date(value, seconds):
    assert retry_after({"retry-after": value}, now=lambda: datetime(2026, 1, 2, tzinfo=UTC)) == seconds


def test_redirects_are_followed_to_where_the_page_is(site, client):
    site.add("/a", status=301, Location="/b?x=1")
    site.add("/b", status=302, Location=f"{site.url}/c")
    site.add("/c", "text")
    answer = client().get(f"{site.url}/a")
    assert (answer.url, answer.body) == (f"{site.url}/c", b"text")


def test_a_redirect_loop_ends(site, client):
    site.add("/a", status=302, Location="/a")
    assert refusal(client().get, f"{site.url}/a") == "redirect"
    assert len(site.requests) == 6


@pytest.mark.parametrize(
    "target", ["file:///etc/passwd", "ftp://127.0.0.1/", "http://user:pw@127.0.0.1/", "http://:80/"]
)
def test_a_redirect_to_what_is_no_plain_address_is_refused(site, client, target):
    site.add("/a", status=302, Location=target)
    assert refusal(client().get, f"{site.url}/a") == "bad_address"


def test_a_redirect_to_a_private_address_is_refused_and_nobody_there_is_asked(site, client, serve):
    inner = serve(host="127.0.0.2")
    inner.add("/secret", "secret")
    site.add("/a", status=302, Location=f"http://127.0.0.2:{inner.port}/secret")
    assert refusal(client().get, f"{site.url}/a") == "private_address"
    assert inner.requests == []


def test_without_leave_no_private_address_is_spoken_to(site, client):
    for host in ("127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "2130706433", "127.1"):
        assert refusal(client(guard=AddressGuard()).get, f"http://{host}:{site.port}/") == "private_address"
    assert site.requests == []


def test_a_name_with_one_private_address_among_public_ones_is_refused(client):
    guard = AddressGuard(resolve=lambda *_: ["93.184.216.34", "10.0.0.1"])
    assert refusal(client(guard=guard).get, "http://docs.example/") == "private_address"


def test_the_connection_goes_to_the_address_that_was_checked(site, client):
    """A name that stands for something else when it is asked for again gains nothing: it is asked for once."""
    answers = [["127.0.0.1"], ["127.0.0.3"]]
    guard = AddressGuard(networks=LOCAL.networks, resolve=lambda *_: answers.pop(0))
    site.add("/a", "text")
    assert client(guard=guard).get(f"http://docs.example:{site.port}/a").body == b"text"
    assert site.requests[0][1]["Host"] == f"docs.example:{site.port}"
    assert answers == [["127.0.0.3"]]


@pytest.mark.parametrize(
    "address",
    [
        "10.1.2.3", "172.16.0.1", "192.168.1.1", "127.0.0.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1",
        "255.255.255.255", "198.18.0.1", "::1", "::", "fe80::1%eth0", "fc00::1", "fec0::1", "ff02::1",
        "::ffff:10.0.0.1", "::10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::", "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    ],
)  # fmt: skip
def test_an_address_that_is_not_public_is_refused(address):
    with pytest.raises(ItemError) as caught:
        AddressGuard(resolve=lambda *_: [address]).addresses("docs.example", 80)
    assert caught.value.reason == "private_address"


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"])
def test_a_public_address_is_let_through(address):
    assert AddressGuard(resolve=lambda *_: [address]).addresses("docs.example", 80) == [address]


def test_an_allowed_network_and_a_trusted_host_are_let_through():
    guard = AddressGuard(
        networks=(ipaddress.ip_network("10.0.0.0/8"),),
        trusted_hosts=frozenset({"wiki.internal"}),
        resolve=lambda host, _: {"a": ["10.0.0.1"], "b": ["11.0.0.1", "192.168.0.1"]}.get(host, ["192.168.0.1"]),
    )
    assert guard.addresses("a", 80) == ["10.0.0.1"]
    assert guard.addresses("Wiki.Internal", 80) == ["192.168.0.1"]
    for host in ("b", "c"):
        with pytest.raises(ItemError):
            guard.addresses(host, 80)


def test_an_unknown_name_cannot_be_reached():
    with pytest.raises(ItemError) as caught:
        AddressGuard().addresses("no-such-host.invalid", 80)
    assert caught.value.reason == "unreachable"


def test_credentials_go_to_their_origin_only(site, serve, client):
    other = serve()
    site.add("/a", status=302, Location=f"{other.url}/b")
    other.add("/b", "text")
    it = client(credentials={"Authorization": "Bearer hush"}, credentials_for=site.url)
    assert it.get(f"{site.url}/a").body == b"text"
    assert site.requests[0][1]["Authorization"] == "Bearer hush"
    assert "Authorization" not in other.requests[0][1]
    assert "hush" not in repr(it)


@pytest.fixture
def certificate(tmp_path):
    """Return paths of a certificate for docs.example and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "docs.example")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("docs.example")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    (tmp_path / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    (tmp_path / "key.pem").write_bytes(pem)
    return tmp_path / "cert.pem", tmp_path / "key.pem"


def test_certificates_are_checked_against_the_name_not_the_address(serve, client, certificate):
    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_side.load_cert_chain(*certificate)
    site = serve(wrap=lambda it: server_side.wrap_socket(it, server_side=True))
    site.add("/a", "text")
    trusting = ssl.create_default_context(cafile=certificate[0])
    guard = AddressGuard(networks=LOCAL.networks, resolve=lambda *_: ["127.0.0.1"])
    assert client(guard=guard, ssl_context=trusting).get(f"https://docs.example:{site.port}/a").body == b"text"
    assert refusal(client(guard=guard, ssl_context=trusting).get, f"https://other.example:{site.port}/a") == (
        "unreachable"
    )
    assert refusal(client(guard=guard).get, f"https://docs.example:{site.port}/a") == "unreachable"
