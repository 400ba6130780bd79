"""Secrets of connections, encrypted at rest.

They are sealed with keys that are derived from `SECRET_KEY`; after `SECRET_KEY` has changed, what was sealed before
opens as long as the old one stands in Django's `SECRET_KEY_FALLBACKS`.
"""

import base64
import json
from collections.abc import Mapping
from typing import Final

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.utils.encoding import force_bytes

from corecube.errors import ConfigError

_PURPOSE: Final = b"corecube connection secrets v1"
_KEY_BYTES: Final = 32
_MOST_CHARACTERS: Final = 20_000


def seal(secrets: Mapping[str, str]) -> str:
    """Return secrets as a token that only this installation opens, empty for none.

    Raises ConfigError for what is not a mapping of short texts.
    """
    if not secrets:
        return ""
    if not all(isinstance(value, str) and isinstance(name, str) for name, value in secrets.items()):
        raise ConfigError("Secrets must be texts.")
    text = json.dumps(dict(secrets))
    if len(text) > _MOST_CHARACTERS:
        raise ConfigError(f"The secrets are longer than {_MOST_CHARACTERS} characters.")
    return _keys().encrypt(text.encode()).decode()


def unseal(token: str) -> dict[str, str]:
    """Return the secrets of a token, none for an empty one; raise ConfigError when it cannot be opened."""
    if not token:
        return {}
    try:
        opened: dict[str, str] = json.loads(_keys().decrypt(token.encode()))
    except InvalidToken as error:
        message = "The connection's secrets cannot be opened: SECRET_KEY has changed since. Enter them again."
        raise ConfigError(message) from error
    return opened


def reseal(token: str) -> str:
    """Return the same secrets sealed with the current key; raise ConfigError when they cannot be opened."""
    return seal(unseal(token))


def _keys() -> MultiFernet:
    return MultiFernet([_fernet(force_bytes(key)) for key in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)])


def _fernet(secret_key: bytes) -> Fernet:
    derived = HKDF(algorithm=SHA256(), length=_KEY_BYTES, salt=None, info=_PURPOSE).derive(secret_key)
    return Fernet(base64.urlsafe_b64encode(derived))
