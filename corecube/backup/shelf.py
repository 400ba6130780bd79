"""The backups of a place: its header, their manifests, and which of them are retained."""

import json
import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Self

from corecube.backup import manifest as manifests
from corecube.backup.manifest import Manifest
from corecube.backup.parts import Parts
from corecube.backup.sealing import SALT_BYTES, Seal
from corecube.connectors.places import Place, place_at
from corecube.errors import BackupError
from corecube.secrets import key_ids

_HEADER: Final = "corecube-backup.json"
_FOLDER: Final = "backups"
_NAME: Final = re.compile(r"[0-9]{8}T[0-9]{6}Z")
_TIME: Final = "%Y%m%dT%H%M%SZ"
_MAX_MANIFEST_BYTES: Final = 2**31
#: How long parts without a manifest remain, for an interrupted backup that will be resumed.
_RESUMABLE: Final = timedelta(days=2)


@dataclass(frozen=True, slots=True)
class Shelf:
    """The backups of one installation in a place."""

    place: Place
    seal: Seal
    installation: str  #: The id of the secret key with which the first backup was made.

    @classmethod
    def at(cls, address: str, passphrase: str, *, is_new: bool = False) -> Self:
        """Return the backups at a place, with `is_new` a first one too.

        Raises BackupError if it has none, has those of something else, or the passphrase is wrong.
        """
        place = place_at(address)
        stored = place.read(_HEADER)
        if stored is not None:
            return cls(place, *_opened(stored, passphrase, address))
        if not is_new:
            raise BackupError(f"There is no backup in {address}.")
        shelf = _begun(place, passphrase)
        return cls(place, *shelf)

    def require_ours(self) -> None:
        """Raise BackupError unless this installation made the backups."""
        if self.installation not in key_ids():
            raise BackupError("The place has the backups of another installation. Choose another place.")

    def parts(self, share: float = 1.0) -> Parts:
        """Return the parts of all backups; writing and checking them take a share of the time."""
        return Parts(self.place, self.seal, share)

    def names(self) -> list[str]:
        """Return the names of the complete backups, the oldest first; they are their times."""
        found = (name.rpartition("/")[2] for name in self.place.names(_FOLDER))
        return sorted(name for name in found if _NAME.fullmatch(name))

    def manifest(self, name: str) -> Manifest:
        """Return the manifest of a backup; raise BackupError without one, and for a damaged one."""
        stored = self.place.read(f"{_FOLDER}/{name}") if _NAME.fullmatch(name) else None
        if stored is None:
            raise BackupError(f"There is no backup {name!r}.")
        digest, _, sealed = stored.partition(b"\n")
        text = self.seal.unpack(name, sealed, max_bytes=_MAX_MANIFEST_BYTES)
        if self.seal.name(text) != digest.decode(errors="replace"):
            raise BackupError(f"The manifest of {name} is damaged.")
        return manifests.from_json(text)

    def add(self, manifest: Manifest) -> str:
        """Store a manifest, which completes its backup; return the backup's name."""
        name, text = manifest.made_at.strftime(_TIME), manifests.to_json(manifest)
        self.place.flush()
        stored = f"{self.seal.name(text)}\n".encode() + self.seal.pack(name, text)
        self.place.write(f"{_FOLDER}/{name}", stored)
        if self.manifest(name) != manifest:
            raise BackupError(f"The manifest of {name} is damaged.")
        self.place.flush()
        return name

    def retain(self, count: int) -> list[str]:
        """Delete all but the newest complete backups, at least one, and what only they need; return their names.

        Nothing that no backup consists of is deleted. While a manifest cannot be read, neither is any part.
        """
        names = self.names()
        old = names[: -max(1, count)]
        needed = frozenset().union(*(self.manifest(name).parts for name in names[len(old) :]))
        for name in old:
            self.place.delete(f"{_FOLDER}/{name}")
        parts, now = self.parts(), datetime.now(UTC)
        for part, at in parts.look().items():
            if part not in needed and now - at > _RESUMABLE:
                parts.delete(part)
        return old


def _begun(place: Place, passphrase: str) -> tuple[Seal, str]:
    salt = os.urandom(SALT_BYTES) if passphrase else b""
    seal, installation = _sealed(passphrase, salt), key_ids()[0]
    header = {"format": manifests.FORMAT, "installation": installation, "salt": salt.hex()}
    place.write(_HEADER, json.dumps(header | {"proof": seal.proof if salt else ""}).encode())
    return seal, installation


def _opened(header: bytes, passphrase: str, address: str) -> tuple[Seal, str]:
    try:
        found = json.loads(header)
        made_with, installation = int(found["format"]), str(found["installation"])
        salt, proof = bytes.fromhex(found["salt"]), str(found["proof"])
    except (ValueError, KeyError, TypeError) as error:
        raise BackupError(f"The file {_HEADER} in {address} is damaged.") from error
    if made_with > manifests.FORMAT:
        raise BackupError("A later version of CoreCube made the backups. Upgrade CoreCube first.")
    if salt and not passphrase:
        raise BackupError(
            "The backups are encrypted. Set CORECUBE_BACKUP_PASSPHRASE, or CORECUBE_BACKUP_PASSPHRASE_FILE."
        )
    if passphrase and not salt:
        raise BackupError("The backups in this place are not encrypted. Choose another place, or unset the passphrase.")
    seal = _sealed(passphrase, salt)
    if salt and seal.proof != proof:
        raise BackupError("The passphrase is wrong.")
    return seal, installation


def _sealed(passphrase: str, salt: bytes) -> Seal:
    return Seal.of_passphrase(passphrase, salt) if salt else Seal()
