"""Servers of language models on this machine: found at the usual ports of the loopback address.

Nothing of a request decides where is looked: the addresses are fixed. Only admins start a search.
"""

import json
import logging
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import httpx2

from retrieval.llm.service_presets import PRESETS, ServicePreset

logger = logging.getLogger(__name__)
_HOST: Final = "127.0.0.1"
#: The services of the ports. CoreCube itself uses 8000, so only a server that calls itself vLLM counts there.
_PORTS: Final = {11434: "ollama", 8080: "llamacpp", 8000: "vllm", 8001: "vllm"}
#: The services by `owned_by` in their lists of models.
_OWNERS: Final = {"library": "ollama", "llamacpp": "llamacpp", "vllm": "vllm"}
_SHARED: Final = frozenset({8000, 8001})
_SECONDS: Final = 0.5
_MAX_BYTES: Final = 2**20
_MAX_MODELS: Final = 50
_MAX_NAME_CHARACTERS: Final = 200


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A server on this machine."""

    preset: ServicePreset
    port: int
    models: tuple[str, ...]

    @property
    def base_url(self) -> str:
        """Its address, up to and including /v1."""
        return f"http://{_HOST}:{self.port}/v1"


def local_servers(
    *, own_ports: Collection[int] = (), ports: Collection[int] = tuple(_PORTS)
) -> tuple[LocalServer, ...]:
    """Return the servers that answer now; CoreCube's own ports are left out. It takes half a second at most."""
    wanted = [port for port in ports if port not in own_ports]
    with ThreadPoolExecutor(max(1, len(wanted)), thread_name_prefix="local-servers") as threads:
        return tuple(server for server in threads.map(_server_at, wanted) if server)


def _server_at(port: int) -> LocalServer | None:
    try:
        content: Any = json.loads(_read(f"http://{_HOST}:{port}/v1/models"))
        listed = [it for it in content["data"] if isinstance(it, dict)]
    except (httpx2.HTTPError, ValueError, LookupError, TypeError, RecursionError):
        return None
    owners = {str(it.get("owned_by")) for it in listed}
    known = next((_OWNERS[it] for it in sorted(owners) if it in _OWNERS), "")
    models = tuple(sorted(_names(listed)))
    if not models or "corecube" in owners or (port in _SHARED and known != _PORTS[port]):
        return None
    logger.info("local_server.found port=%d models=%d", port, len(models))
    return LocalServer(PRESETS[known or _PORTS.get(port, "llamacpp")], port, models[:_MAX_MODELS])


def _names(listed: list[dict[str, Any]]) -> Iterator[str]:
    for it in listed:
        name = it.get("id")
        if isinstance(name, str) and name.isprintable() and 0 < len(name) <= _MAX_NAME_CHARACTERS:
            yield name


def _read(url: str) -> bytes:
    """Return the body of a response; raise HTTPError, ValueError for another status or a body that is too long."""
    with (
        httpx2.Client(trust_env=False, follow_redirects=False, timeout=_SECONDS) as client,
        client.stream("GET", url, headers={"accept-encoding": "identity"}) as response,
    ):
        if response.status_code != httpx2.codes.OK:
            raise ValueError
        body = b""
        for part in response.iter_raw():
            body += part
            if len(body) > _MAX_BYTES:
                raise ValueError
        return body
