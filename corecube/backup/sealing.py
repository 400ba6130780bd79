"""Names, compression and encryption of stored pieces.

With a passphrase, scrypt derives the keys, HMAC-SHA256 names the pieces, and AES-256-GCM encrypts and authenticates
each one together with its name. Without one, SHA-256 names them, and they are only compressed.
"""

import hashlib
import hmac
import os
import zlib
from dataclasses import dataclass, field
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from corecube.errors import BackupError

SALT_BYTES: Final = 16
_KEY_BYTES: Final = 32
_NONCE_BYTES: Final = 12
_COST: Final = 2**16  #: scrypt's n: 64 MiB of memory and a fifth of a second for each guess.
_LEVEL: Final = 1  #: Higher levels of zlib take several times longer for a few percent.
_PROOF: Final = b"corecube backup"


@dataclass(frozen=True, slots=True)
class Seal:
    """Names, packs and unpacks pieces; without keys nothing is encrypted."""

    naming_key: bytes = field(default=b"", repr=False)
    encryption_key: bytes = field(default=b"", repr=False)

    @classmethod
    def of_passphrase(cls, passphrase: str, salt: bytes) -> "Seal":
        """Return the seal of a passphrase."""
        keys = Scrypt(salt=salt, length=2 * _KEY_BYTES, n=_COST, r=8, p=1).derive(passphrase.encode())
        return cls(keys[:_KEY_BYTES], keys[_KEY_BYTES:])

    @property
    def proof(self) -> str:
        """What tells whether a passphrase is the right one."""
        return self.name(_PROOF)

    def name(self, content: bytes) -> str:
        """Return the name of a piece with this content: 64 hexadecimal digits."""
        if self.naming_key:
            return hmac.digest(self.naming_key, content, "sha256").hex()
        return hashlib.sha256(content).hexdigest()

    def pack(self, name: str, content: bytes) -> bytes:
        """Return what is stored of a content under a name."""
        packed = zlib.compress(content, _LEVEL)
        if not self.encryption_key:
            return packed
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + AESGCM(self.encryption_key).encrypt(nonce, packed, name.encode())

    def unpack(self, name: str, stored: bytes, *, max_bytes: int) -> bytes:
        """Return the content; raise BackupError for bytes that were not packed under this name, or are too many."""
        try:
            if self.encryption_key:
                nonce, sealed = stored[:_NONCE_BYTES], stored[_NONCE_BYTES:]
                stored = AESGCM(self.encryption_key).decrypt(nonce, sealed, name.encode())
            unpacking = zlib.decompressobj()
            content = unpacking.decompress(stored, max_bytes)
        except (InvalidTag, ValueError, zlib.error) as error:
            raise BackupError(f"{name} is damaged.") from error
        if not unpacking.eof:
            raise BackupError(f"{name} is damaged.")
        return content
