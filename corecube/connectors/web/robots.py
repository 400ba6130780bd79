"""What robots.txt allows (RFC 9309)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from protego import Protego

from corecube.connectors.http import USER_AGENT, Answer
from corecube.connectors.types import ItemError
from corecube.connectors.urls import origin

#: A robots.txt counts up to here.
_MAX_BYTES: Final = 500 * 1024
_MAX_DELAY_SECONDS: Final = 60.0
_OK: Final = 200
_SERVER_ERROR: Final = 500
_TOO_MANY: Final = 429


@dataclass
class Robots:
    """Asks each host once and remembers its rules. A host that cannot be asked allows nothing."""

    get: Callable[[str], Answer]
    #: Hosts, with scheme and port, whose rules could not be asked for.
    unreadable: list[str] = field(default_factory=list)
    _rules: dict[str, Protego] = field(default_factory=dict)

    def allows(self, url: str) -> bool:
        """Return whether an address may be visited."""
        return self._of(url).can_fetch(url, USER_AGENT)

    def delay_seconds(self, url: str) -> float:
        """Return the seconds that a host wants between two visits, at most a minute."""
        return min(self._of(url).crawl_delay(USER_AGENT) or 0.0, _MAX_DELAY_SECONDS)

    def sitemaps(self, url: str) -> list[str]:
        """Return the addresses of the sitemaps that a host names, as they are written."""
        return list(self._of(url).sitemaps)

    def _of(self, url: str) -> Protego:
        place = origin(url)
        if place not in self._rules:
            self._rules[place] = Protego.parse(self._asked(place))
        return self._rules[place]

    def _asked(self, place: str) -> str:
        """Return a host's rules: none where it says that there are none, all forbidden where it does not answer."""
        try:
            answer = self.get(f"{place}/robots.txt")
        except ItemError as error:
            if error.reason == "redirect":
                return ""
            answer = None
        if answer is None or answer.status >= _SERVER_ERROR or answer.status == _TOO_MANY:
            self.unreadable.append(place)
            return "User-agent: *\nDisallow: /\n"
        return answer.body[:_MAX_BYTES].decode("utf-8", "replace") if answer.status == _OK else ""
