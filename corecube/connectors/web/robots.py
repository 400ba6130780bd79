"""The rules of robots.txt (RFC 9309)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

from protego import Protego

from corecube.connectors.http import USER_AGENT, Response
from corecube.connectors.network import origin
from corecube.connectors.types import ItemError

_MAX_BYTES: Final = 500 * 1024  #: The rest of a larger robots.txt is ignored.
_MAX_DELAY_SECONDS: Final = 60.0


@dataclass
class Robots:
    """Fetches the rules of each host once. A host whose robots.txt cannot be read allows nothing."""

    get: Callable[[str], Response]
    #: Hosts, with scheme and port, whose rules could not be read.
    unreadable: list[str] = field(default_factory=list)
    _rules: dict[str, Protego] = field(default_factory=dict)

    def allows(self, url: str) -> bool:
        """Return whether an address may be visited."""
        return self._rules_of(url).can_fetch(url, USER_AGENT)

    def delay_seconds(self, url: str) -> float:
        """Return the host's crawl delay in seconds, at most a minute."""
        return min(self._rules_of(url).crawl_delay(USER_AGENT) or 0.0, _MAX_DELAY_SECONDS)

    def sitemaps(self, url: str) -> list[str]:
        """Return the addresses of the sitemaps in a host's robots.txt, not normalised."""
        return list(self._rules_of(url).sitemaps)

    def _rules_of(self, url: str) -> Protego:
        host = origin(url)
        if host not in self._rules:
            self._rules[host] = Protego.parse(self._fetch(host))
        return self._rules[host]

    def _fetch(self, host: str) -> str:
        """Return a host's robots.txt: empty if there is none, and one that forbids everything if it cannot be read."""
        try:
            response = self.get(f"{host}/robots.txt")
        except ItemError as error:
            if error.reason == "redirect":
                return ""
            response = None
        if (
            response is None
            or response.status >= HTTPStatus.INTERNAL_SERVER_ERROR
            or response.status == HTTPStatus.TOO_MANY_REQUESTS
        ):
            self.unreadable.append(host)
            return "User-agent: *\nDisallow: /\n"
        return response.body[:_MAX_BYTES].decode("utf-8", "replace") if response.status == HTTPStatus.OK else ""
