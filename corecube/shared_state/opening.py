"""Opens the shared store that the settings name."""

import hashlib
import logging

from django.conf import settings

from corecube.shared_state.store import CachingStore

logger = logging.getLogger(__name__)


def open_store() -> CachingStore | None:
    """Return the store in Redis; None without Redis, or if the client cannot read its address."""
    if not settings.CORECUBE_REDIS_URL:
        return None
    from corecube.secrets import CacheCipher  # noqa: PLC0415 -- only where there is a Redis, as the client
    from corecube.shared_state.redis_store import RedisStore  # noqa: PLC0415

    try:
        return RedisStore(settings.CORECUBE_REDIS_URL, CacheCipher(), code=code_digest())
    except ValueError:
        # Without the error: it may contain the password.
        logger.error("shared_state.invalid_address")  # noqa: TRY400
        return None


def code_digest() -> str:
    """Return a digest of the code: other code may not read what this one caches."""
    digest = hashlib.sha256()
    for app in ("corecube", "retrieval", "explorer"):
        for path in sorted((settings.BASE_DIR / app).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()
