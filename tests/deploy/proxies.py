"""nginx and Caddy from Debian, run with the files of `deploy/` in front of a server."""

import datetime as dt
import ipaddress
import shutil
import socket
import ssl
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.pooler import answers
from tests.race import until

DEPLOY = Path(__file__).parents[2] / "deploy"
_NGINX = """
daemon off; user root; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/errors.log;
events {{}}
http {{
    include /etc/nginx/mime.types;
    access_log off;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/f;
    uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
    include {folder}/corecube.conf;
}}
"""
_HOST = "127.0.0.1"


def program(name):
    """Return the path of a program; a test that needs it is left out where it is missing."""
    return shutil.which(name, path="/usr/sbin:/usr/bin:/usr/local/bin") or pytest.skip(f"{name} is not installed")


@dataclass(frozen=True)
class Proxy:
    """A proxy with TLS in front of the server."""

    name: str
    folder: Path
    port: int

    @property
    def address(self):
        return f"https://{_HOST}:{self.port}"

    @property
    def trust(self):
        """What trusts its certificate."""
        return ssl.create_default_context(cafile=self.folder / "certificate.pem")

    def client(self, *, source=_HOST, **options):
        """Return a client whose connections come from an address of this machine."""
        transport = httpx2.HTTPTransport(verify=self.trust, local_address=source, trust_env=False)
        return httpx2.Client(base_url=self.address, transport=transport, timeout=30, **options)


@contextmanager
def running_proxy(name, folder, server):
    """Run a proxy with its file of `deploy/` in front of the server at this address."""
    command = program(name)
    _write_certificate(folder)
    port = free_port()
    upstream = server.removeprefix("http://")
    arguments = (_nginx if name == "nginx" else _caddy)(folder, port, upstream)
    environment = {"HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen([command, *arguments], env=environment, stdout=output, stderr=output)
    try:
        until(lambda: answers(port) or process.poll() is not None, seconds=30)
        assert process.poll() is None, (folder / "output").read_text()
        yield Proxy(name, folder, port)
    finally:
        process.terminate()
        process.wait(10)


def _nginx(folder, port, upstream):
    # A port that was just free can be handed out again.
    other = next(it for it in iter(free_port, None) if it != port)
    changes = {
        "listen 80;": f"listen {_HOST}:{other};",
        "listen 443 ssl http2;": f"listen {_HOST}:{port} ssl http2;",
        "server 127.0.0.1:8000;": f"server {upstream};",
        "/etc/ssl/corecube/fullchain.pem": f"{folder}/certificate.pem",
        "/etc/ssl/corecube/privkey.pem": f"{folder}/key.pem",
        "/var/log/nginx/": f"{folder}/",
    }
    (folder / "corecube.conf").write_text(changed(DEPLOY / "nginx" / "corecube.conf", changes))
    (folder / "nginx.conf").write_text(_NGINX.format(folder=folder))
    return ["-c", str(folder / "nginx.conf"), "-p", str(folder)]


def _caddy(folder, port, upstream):
    changes = {
        "\tlog {": "\tadmin off\n\tauto_https disable_redirects\n\tlog {",
        "corecube.example.org} {": f"https://{_HOST}:{port}}} {{\n\ttls {folder}/certificate.pem {folder}/key.pem",
        "UPSTREAM:127.0.0.1:8000}": f"UPSTREAM:{upstream}}}",
    }
    (folder / "Caddyfile").write_text(changed(DEPLOY / "caddy" / "Caddyfile", changes))
    return ["run", "--config", str(folder / "Caddyfile"), "--adapter", "caddyfile"]


def changed(path, changes):
    """Return a file's text with places of this machine; each must be in it."""
    text = path.read_text()
    for old, new in changes.items():
        assert old in text, old
        text = text.replace(old, new)
    return text


def free_port():
    """Return a port on which nobody listens."""
    with socket.create_server((_HOST, 0)) as probe:
        return probe.getsockname()[1]


def _write_certificate(folder):
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "corecube")])
    now, hosts = dt.datetime.now(dt.UTC), [x509.IPAddress(ipaddress.ip_address(_HOST))]
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    made = made.not_valid_before(now - dt.timedelta(days=1)).not_valid_after(now + dt.timedelta(days=1))
    made = made.add_extension(x509.SubjectAlternativeName(hosts), critical=False)
    pem = serialization.Encoding.PEM
    (folder / "certificate.pem").write_bytes(made.sign(key, hashes.SHA256()).public_bytes(pem))
    plain = serialization.NoEncryption()
    (folder / "key.pem").write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
