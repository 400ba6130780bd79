"""Sessions of the protocol's revisions before 2026-07-28: what their clients follow.

An id is signed for its principal, so every web process recognises it. What a session follows is stored in Redis for all
processes, otherwise in the memory of this one. A session whose state is lost still takes calls, and follows nothing.
"""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, TypeVar

from django.core.signing import BadSignature, TimestampSigner

from corecube.access import Principal
from corecube.errors import InvalidRequestError, NotFoundError
from corecube.shared_state.store import MemoryStore, Store, shared

MAX_FOLLOWED: Final = 100  #: Documents that a session can follow.
_MAX_SESSIONS: Final = 50  #: Sessions of a principal; a further one ends the one that was used longest ago.
_MAX_AGE: Final = timedelta(days=7)
_IDLE_SECONDS: Final = 7200.0  #: Time without use after which a session is forgotten; the shared store allows no more.
_TOUCH_SECONDS: Final = 60.0  #: Use within this time is not noted again.
_MAX_ID: Final = 200
_memory: Final = MemoryStore()
#: Document URIs with the versions that the client knows; None for a session that its client has ended.
_Followed = dict[str, str] | None
_T = TypeVar("_T")


class SessionNotFoundError(NotFoundError, code="session_not_found"):
    """There is no such session of yours, or it has ended: begin a new one with `initialize`."""


class TooManyFollowedError(InvalidRequestError, code="too_many_followed"):
    """A session can follow at most 100 documents."""


@dataclass(frozen=True, slots=True)
class Session:
    """A session of a principal."""

    owner: str
    name: str

    def follow(self, uri: str, version: str) -> None:
        """Follow a document from a version on; raise TooManyFollowedError or SessionNotFoundError."""

        def add(followed: dict[str, str]) -> tuple[_Followed, bool]:
            more = {**followed, uri: version}
            return (more, True) if len(more) <= MAX_FOLLOWED else (followed, False)

        if not self._change(add):
            raise TooManyFollowedError

    def unfollow(self, uri: str) -> None:
        """Follow a document no longer; raise SessionNotFoundError."""
        self._change(lambda followed: ({it: version for it, version in followed.items() if it != uri}, True))

    def followed(self) -> tuple[str, ...]:
        """Return the URIs of what it follows; raise SessionNotFoundError."""
        return self._change(lambda followed: (followed, tuple(followed)))

    def changed(self, versions: Mapping[str, str]) -> tuple[str, ...]:
        """Note the present versions and return the URIs of those that are new; raise SessionNotFoundError.

        Each change is returned once, whichever process asks.
        """

        def note(followed: dict[str, str]) -> tuple[_Followed, tuple[str, ...]]:
            known = {uri: versions[uri] for uri in followed if uri in versions}
            return {**followed, **known}, tuple(uri for uri, version in known.items() if followed[uri] != version)

        return self._change(note)

    def end(self) -> None:
        """End it; raise SessionNotFoundError."""
        self._change(lambda _: (None, True))

    def require_open(self) -> None:
        """Raise SessionNotFoundError if its client has ended it."""

        def check(entries: dict[str, Any], _: float) -> tuple[dict[str, Any], None]:
            _require_open(entries.get(self.name))
            return entries, None

        _update(self.owner, check)

    def _change(self, change: Callable[[dict[str, str]], tuple[_Followed, _T]]) -> _T:
        def changed(entries: dict[str, Any], now: float) -> tuple[dict[str, Any], _T]:
            if self.name not in entries:
                raise SessionNotFoundError
            used, followed = entries[self.name]
            _require_open(entries[self.name])
            after, result = change(followed)
            return {**entries, self.name: [used if now - used < _TOUCH_SECONDS else now, after]}, result

        return _update(self.owner, changed)


def begin(principal: Principal) -> str:
    """Begin a session, and return its id."""
    name, owner = secrets.token_urlsafe(12), owner_of(principal)

    def add(entries: dict[str, Any], now: float) -> tuple[dict[str, Any], None]:
        latest = sorted(entries.items(), key=lambda it: it[1][0])[1 - _MAX_SESSIONS :]
        return {**dict(latest), name: [now, {}]}, None

    _update(owner, add)
    return _signer(owner).sign(name)


def opened(principal: Principal, given: str) -> Session:
    """Return the session of an id; raise SessionNotFoundError for one of another principal, or an old or ended one."""
    owner = owner_of(principal)
    try:
        name = _signer(owner).unsign(given[:_MAX_ID], max_age=_MAX_AGE)
    except BadSignature:
        raise SessionNotFoundError from None
    session = Session(owner, name)
    session.require_open()
    return session


def owner_of(principal: Principal) -> str:
    """Return a text that differs for each principal."""
    return f"{principal.user.pk} {principal.key.pk if principal.key else ''} {principal.client}"


def _require_open(entry: Any) -> None:  # noqa: ANN401 -- JSON
    if entry is not None and entry[1] is None:
        raise SessionNotFoundError


def _update(owner: str, change: Callable[[dict[str, Any], float], tuple[dict[str, Any], _T]]) -> _T:
    """Change the entries of a principal's sessions: by name, the time of the last use and what is followed."""

    def changed(entries: Any, now: float) -> tuple[Any, _T]:  # noqa: ANN401 -- JSON
        recent = {name: it for name, it in (entries or {}).items() if it[0] > now - _IDLE_SECONDS}
        after, result = change(recent, now)
        return after or None, result

    store: Store = shared() or _memory
    return store.update(f"mcp sessions {owner}", changed)


def _signer(owner: str) -> TimestampSigner:
    return TimestampSigner(salt=f"corecube.agents.session {owner}")
