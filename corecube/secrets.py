"""Encryption of secrets of connections, keys of language models, forwarding secrets of API keys, and shared caches.

The encryption keys are derived from `SECRET_KEY`. After a change, Django's `SECRET_KEY_FALLBACKS` decrypt old secrets.
"""

import base64
import json
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Final

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.utils.crypto import salted_hmac
from django.utils.encoding import force_bytes

from corecube.errors import ConfigError

_KEY_BYTES: Final = 32
_MAX_CHARACTERS: Final = 20_000


class Purpose(StrEnum):
    """The purpose of a token; it cannot be decrypted for another purpose."""

    CONNECTION = "connection"
    LANGUAGE_MODEL = "language model"
    FORWARDING = "API key"
    CACHE = "cache"


#: Context for the key derivation.
_INFO: Final = {
    Purpose.CONNECTION: b"corecube connection secrets v1",
    Purpose.LANGUAGE_MODEL: b"corecube language model keys v1",
    Purpose.FORWARDING: b"corecube forwarding secrets v1",
    Purpose.CACHE: b"corecube cached values v1",
}


def seal(secrets: Mapping[str, str], purpose: Purpose = Purpose.CONNECTION) -> str:
    """Return the encrypted secrets as a token, empty for none; raise ConfigError for other values and long ones."""
    if not secrets:
        return ""
    if not all(isinstance(value, str) and isinstance(name, str) for name, value in secrets.items()):
        raise ConfigError("Secrets must be strings.")
    text = json.dumps(dict(secrets))
    if len(text) > _MAX_CHARACTERS:
        raise ConfigError(f"The secrets are longer than {_MAX_CHARACTERS} characters.")
    return _keys(purpose).encrypt(text.encode()).decode()


def unseal(token: str, purpose: Purpose = Purpose.CONNECTION) -> dict[str, str]:
    """Return the secrets of a token, none for an empty one; raise ConfigError if it cannot be decrypted."""
    if not token:
        return {}
    try:
        opened: dict[str, str] = json.loads(_keys(purpose).decrypt(token.encode()))
    except InvalidToken as error:
        message = f"The {purpose}'s secrets cannot be decrypted, because SECRET_KEY has changed. Enter them again."
        raise ConfigError(message) from error
    return opened


def key_ids() -> tuple[str, ...]:
    """Return what identifies the secret key, then the fallbacks, without revealing them: 32 hexadecimal digits each."""
    return tuple(_derived(key, b"corecube key id v1")[:16].hex() for key in _secret_keys())


def own_key() -> str:
    """Return the secret key if CoreCube made it and stores it; empty for one from the environment."""
    try:
        stored = settings.CORECUBE_SECRET_KEY_FILE.read_text(encoding="ascii").strip()
    except OSError:
        return ""
    return stored if stored == settings.SECRET_KEY else ""


def replace_own_key(key: str) -> None:
    """Store another secret key for the processes that start from now on."""
    file: Path = settings.CORECUBE_SECRET_KEY_FILE
    draft = file.with_name(f"{file.name}.new")
    draft.write_text(key, encoding="ascii")
    draft.replace(file)


class CacheCipher:
    """Encrypts what is cached outside the process, and makes its keys."""

    def __init__(self) -> None:
        self._keys = _keys(Purpose.CACHE)

    def digest(self, text: str) -> str:
        """Return a keyed digest, so that nobody can look up a text that they guess."""
        return salted_hmac("corecube.cache", text, algorithm="sha256").hexdigest()

    def seal(self, data: bytes) -> bytes:
        """Return encrypted data."""
        return self._keys.encrypt(data)

    def unseal(self, token: bytes) -> bytes:
        """Return decrypted data; raise ValueError for what this installation did not encrypt."""
        try:
            return self._keys.decrypt(token)
        except InvalidToken as error:
            raise ValueError("The value was encrypted with another key.") from error


def _keys(purpose: Purpose) -> MultiFernet:
    derived = (_derived(key, _INFO[purpose]) for key in _secret_keys())
    return MultiFernet([Fernet(base64.urlsafe_b64encode(it)) for it in derived])


def _secret_keys() -> tuple[str | bytes, ...]:
    return (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)


def _derived(key: str | bytes, info: bytes) -> bytes:
    return HKDF(algorithm=SHA256(), length=_KEY_BYTES, salt=None, info=info).derive(force_bytes(key))
