"""The store in Redis, with a store in memory for the time while Redis does not answer.

Keys are digests, and cached values are encrypted: who can read Redis learns neither queries nor documents, and who can
write to it cannot make a process load a value of their own. Counters and leases are numbers in the clear.
"""

import json
import logging
import pickle
from collections.abc import Callable, Hashable
from threading import Lock
from time import monotonic
from typing import Any, Final, TypeVar

from redis import Redis, RedisError
from redis.backoff import NoBackoff
from redis.retry import Retry

from corecube.secrets import CacheCipher
from corecube.shared_state.store import MemoryStore, Value

logger = logging.getLogger(__name__)

#: Time limit of connecting and of each answer. Redis answers in less than a millisecond.
_SECONDS: Final = 0.1
#: Time after a failure in which Redis is not asked.
_PAUSE_SECONDS: Final = 5.0
_KEPT_SECONDS: Final = 7200
_MAX_BYTES: Final = 2**20  #: Of a cached value.
_TRIES: Final = 100
#: What the client raises: also for settings in the URL that it does not know.
_FAILURES: Final = (RedisError, OSError, TypeError, ValueError)
_SWAP: Final = """
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
if ARGV[2] == '' then redis.call('DEL', KEYS[1]) else redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[3]) end
return 1
"""

_T = TypeVar("_T")


class RedisStore:
    """A store that all processes with the same Redis and key share; thread-safe.

    `code` identifies the code that can read cached values. `clock` replaces the clock of Redis.
    """

    def __init__(
        self, url: str, cipher: CacheCipher, *, code: str = "", clock: Callable[[], float] | None = None
    ) -> None:
        self._redis = Redis.from_url(
            url, socket_timeout=_SECONDS, socket_connect_timeout=_SECONDS, retry=Retry(NoBackoff(), 0)
        )
        self._swap = self._redis.register_script(_SWAP)
        self._cipher, self._code, self._clock = cipher, code, clock
        self._memory = MemoryStore(clock or monotonic)
        self._lock = Lock()
        self._failure = ""
        self._asks_from = 0.0

    @property
    def is_away(self) -> bool:
        """Whether Redis failed when it was asked last."""
        return bool(self._failure)

    @property
    def problem(self) -> str:
        """Why processes share nothing now; empty if they do. Asks Redis, unless it failed within the last seconds."""
        self._asked(self._redis.ping, bool)
        return self._failure

    def update(self, key: str, change: Callable[[Value, float], tuple[Value, _T]]) -> _T:
        """Replace a value as `Store.update` does."""
        name = f"corecube:state:{self._cipher.digest(key)}"
        return self._asked(lambda: self._update(name, change), lambda: self._memory.update(key, change))

    def cached(self, kind: str, key: Hashable) -> Any:  # noqa: ANN401 -- what was cached
        """Return a cached value; None if there is none, or if it was not cached under this key by the same code."""
        name = self._cache_name(kind, key)
        token = self._asked(lambda: self._redis.get(name), lambda: None)
        if not isinstance(token, bytes):
            return None
        try:
            written_as, _, data = self._cipher.unseal(token).partition(b" ")
            # Only who has the installation's secret key can have written it.
            return pickle.loads(data) if written_as == name.encode() else None  # noqa: S301
        except Exception as error:  # noqa: BLE001 -- a search does without
            logger.warning("shared_state.unreadable kind=%s error=%s", kind, type(error).__name__)
            return None

    def cache(self, kind: str, key: Hashable, value: object, *, seconds: float) -> None:
        """Cache a value, unless it takes more than 1 MiB."""
        name = self._cache_name(kind, key)
        try:
            token = self._cipher.seal(name.encode() + b" " + pickle.dumps(value))
        except Exception as error:  # noqa: BLE001 -- a search does without
            logger.warning("shared_state.not_cached kind=%s error=%s", kind, type(error).__name__)
            return
        if len(token) <= _MAX_BYTES:
            self._asked(lambda: self._redis.set(name, token, px=int(1000 * seconds)), lambda: None)

    def _cache_name(self, kind: str, key: Hashable) -> str:
        return f"corecube:{kind}:{self._cipher.digest(f'{self._code} {key!r}')}"

    def _update(self, name: str, change: Callable[[Value, float], tuple[Value, _T]]) -> _T:
        for _ in range(_TRIES):
            reads = self._redis.pipeline(transaction=False)
            reads.get(name)
            reads.time()
            before, (seconds, microseconds) = reads.execute()
            now = self._clock() if self._clock else seconds + microseconds / 1_000_000
            value, result = change(json.loads(before) if before else None, now)
            after = b"" if value is None else json.dumps(value).encode()
            if after == (before or b"") or self._swap([name], [before or b"", after, _KEPT_SECONDS]):
                return result
        raise RedisError("Other processes changed the value each time.")

    def _asked(self, ask: Callable[[], _T], otherwise: Callable[[], _T]) -> _T:
        """Return what Redis answers; `otherwise` if it fails, and for some seconds after a failure."""
        if self._failure and not self._may_try():
            return otherwise()
        try:
            answer = ask()
        except _FAILURES as error:
            self._begin_pause(type(error).__name__)
            return otherwise()
        if self._failure:
            self._failure = ""
            logger.warning("shared_state.available")
        return answer

    def _may_try(self) -> bool:
        """Return whether the pause is over, and begin another one: others do not wait with the one that tries."""
        with self._lock:
            is_over = monotonic() >= self._asks_from
            if is_over:
                self._asks_from = monotonic() + _PAUSE_SECONDS
            return is_over

    def _begin_pause(self, error: str) -> None:
        with self._lock:
            if not self._failure:
                logger.warning("shared_state.unavailable error=%s", error)
            self._failure = f"Redis does not answer ({error}): each process has its own caches and limits."
            self._asks_from = monotonic() + _PAUSE_SECONDS
