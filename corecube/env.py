"""Typed reads of environment variables for `settings.py`, and for settings of one request that a program reads.

Invalid values raise ImproperlyConfigured.

The values are recorded for the console and `manage.py showconfig`. Below are the defaults that an installation creates
itself.
"""

import os
import pwd
import re
import secrets
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from corecube.metadata_addresses import REFUSAL, names_refused

_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})
_FOLDER_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*", re.ASCII | re.IGNORECASE)
_ORIGIN = re.compile(r"https?://(?:[a-z0-9.-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?", re.ASCII)
_IDENTIFIER = re.compile(r"([a-z_][a-z0-9_]*\.)?[a-z_][a-z0-9_]*", re.ASCII | re.IGNORECASE)
_T = TypeVar("_T")
_N = TypeVar("_N", int, float)


class Origin(StrEnum):
    """Where a setting's value comes from."""

    ENVIRONMENT = "environment"
    FILE = "file"  #: The file that `NAME_FILE` names.
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Reading:
    """A variable with its value."""

    name: str
    value: str  #: As text; for a secret only whether it is set.
    origin: Origin
    is_plain: bool = False  #: Whether it is a number, yes or no, or one of some words, which say nothing of the site.

    @property
    def is_locked(self) -> bool:
        """Whether it is set outside, so that the console cannot change it."""
        return self.origin is not Origin.DEFAULT


_BUCKET: Final = re.compile(r"s3://[A-Za-z0-9._-]{3,255}(?:/[^\s?#]{0,900})?")
_readings: Final[dict[str, Reading]] = {}
_files: Final[set[Path]] = set()


def readings() -> tuple[Reading, ...]:
    """Return all variables by name, without secrets."""
    return tuple(_readings[name] for name in sorted(_readings))


def files_named() -> frozenset[Path]:
    """Return the files named by variables `NAME_FILE`; most contain a secret."""
    return frozenset(_files)


def _recorded(name: str, value: _T, *, secret: bool = False, plain: bool = False) -> _T:
    shown = ("set" if value else "not set") if secret else _shown(value)
    if os.environ.get(f"{name}_FILE"):
        origin = Origin.FILE
    else:
        origin = Origin.ENVIRONMENT if os.environ.get(name, "").strip() else Origin.DEFAULT
    _readings[name] = Reading(name, shown, origin, plain)
    return value


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Iterable) and not isinstance(value, str):
        return ", ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def text(name: str, default: str = "") -> str:
    """Return the variable, or the content of the file named by `NAME_FILE`."""
    return _recorded(name, _read(name, default))


def secret(name: str) -> str:
    """Return a secret variable, or the content of its file; empty if unset."""
    return _recorded(name, _read(name), secret=True)


def secret_texts(name: str) -> list[str]:
    """Return the comma-separated values of a secret variable."""
    return [part.strip() for part in secret(name).split(",") if part.strip()]


def _read(name: str, default: str = "") -> str:
    if path := os.environ.get(f"{name}_FILE"):
        _files.add(Path(path).absolute())
        try:
            return Path(path).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise ImproperlyConfigured(f"{name}_FILE points to {path}, which cannot be read.") from error
    return os.environ.get(name, default).strip()


def flag(name: str, *, default: bool) -> bool:
    """Return a yes/no variable: 1/0, true/false, yes/no or on/off."""
    value = _read(name).lower()
    if not value:
        return _recorded(name, default, plain=True)
    if value in _TRUE | _FALSE:
        return _recorded(name, value in _TRUE, plain=True)
    raise ImproperlyConfigured(f"{name} must be yes or no, not {value!r}.")


def integer(name: str, default: int, *, low: int, high: int) -> int:
    """Return an integer from `low` to `high`."""
    return _number(name, default, low, high, int, "a whole number")


def number(name: str, default: float, *, low: float, high: float) -> float:
    """Return a number from `low` to `high`."""
    return _number(name, default, low, high, float, "a number")


def _number(name: str, default: _N, low: _N, high: _N, convert: Callable[[str], _N], noun: str) -> _N:
    value = _read(name)
    try:
        number = convert(value) if value else default
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} must be {noun}, not {value!r}.") from error
    if low <= number <= high:
        return _recorded(name, number, plain=True)
    raise ImproperlyConfigured(f"{name} must be between {_shown(low)} and {_shown(high)}, not {_shown(number)}.")


def choice(name: str, default: str, choices: Sequence[str]) -> str:
    """Return one of the choices, compared without case."""
    value = _read(name)
    if not value:
        return _recorded(name, default, plain=True)
    for choice in choices:
        if choice.casefold() == value.casefold():
            return _recorded(name, choice, plain=True)
    raise ImproperlyConfigured(f"{name} must be one of {', '.join(choices)}, not {value!r}.")


def identifier(name: str, default: str) -> str:
    """Return an SQL identifier, optionally with a schema."""
    value = _read(name) or default
    if _IDENTIFIER.fullmatch(value):
        return _recorded(name, value)
    raise ImproperlyConfigured(f"{name} must be a name of letters, digits and underscores, not {value!r}.")


def folder_name(name: str) -> str:
    """Return the name of a folder without a path, or empty."""
    value = _read(name)
    if not value or _FOLDER_NAME.fullmatch(value):
        return _recorded(name, value)
    raise ImproperlyConfigured(f"{name} must be a name of letters, digits, dots and hyphens, not {value!r}.")


def url(name: str) -> str:
    """Return the URL of an HTTP service without credentials, or empty."""
    value = _read(name)
    try:
        parts = urlsplit(value)
        is_url = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_url = False
    if value and not (is_url and value.isascii() and value.isprintable() and " " not in value):
        # Not included: it may contain a password.
        raise ImproperlyConfigured(f"{name} must be a URL such as https://host/path.")
    if value and names_refused(parts.hostname or ""):
        raise ImproperlyConfigured(f"{name} is not allowed. {REFUSAL}")
    if value and (parts.username is not None or parts.password is not None):
        raise ImproperlyConfigured(f"{name} must not contain a user or password.")
    # The query string can contain a key.
    _recorded(name, value.partition("?")[0])
    return value


def redis_url(name: str) -> str:
    """Return the address of a Redis server, or empty."""
    value = secret(name)
    try:
        parts = urlsplit(value)
        is_url = parts.scheme in {"redis", "rediss", "unix"} and parts.port != 0
    except ValueError:
        is_url = False
    if value and not is_url:
        raise ImproperlyConfigured(f"{name} must be an address such as redis://:password@host/0.")
    return value


def token(name: str) -> str:
    """Return a secret for an HTTP header: visible ASCII characters, or empty."""
    value = _read(name)
    if not value or (value.isascii() and value.isprintable() and " " not in value):
        return _recorded(name, value, secret=True)
    raise ImproperlyConfigured(f"{name} must consist of visible ASCII characters without spaces.")


def texts(name: str, default: str = "") -> list[str]:
    """Return the comma-separated values of a variable."""
    return _recorded(name, [part.strip() for part in _read(name, default).split(",") if part.strip()])


def origins(name: str) -> list[str]:
    """Return the comma-separated origins of a variable, each a scheme with a host and its port."""
    found = [part.strip().rstrip("/").lower() for part in _read(name).split(",") if part.strip()]
    if all(map(_ORIGIN.fullmatch, found)):
        return _recorded(name, found)
    raise ImproperlyConfigured(f"{name} must be origins such as https://host:port, separated by commas.")


def networks(name: str) -> list[str]:
    """Return the comma-separated addresses and networks of a variable; "*" alone means any."""
    values = texts(name)
    for value in values:
        try:
            ip_network(value)
        except ValueError as error:
            if values != ["*"]:
                message = f"{name} must contain addresses and networks such as 10.0.0.0/8, or only *; not {value!r}."
                raise ImproperlyConfigured(message) from error
    return values


def path(name: str, default: Path) -> Path:
    """Return an absolute path."""
    value = _read(name)
    return _recorded(name, Path(value).expanduser().resolve() if value else default)


def backup_place(name: str) -> str:
    """Return an absolute path or an address in a bucket, or empty."""
    value = text(name)
    if not value or value.startswith("s3://") or Path(value).is_absolute():
        return value
    raise ImproperlyConfigured(f"{name} must be an absolute path, or an address such as s3://bucket/prefix.")


def bucket(name: str) -> str:
    """Return an address in a bucket, or empty."""
    value = text(name)
    if not value or _BUCKET.fullmatch(value):
        return value
    raise ImproperlyConfigured(f"{name} must be an address such as s3://bucket/prefix.")


def folders(name: str, default: Iterable[Path]) -> list[Path]:
    """Return the comma-separated folders of a variable, which must be absolute or start with a home folder."""
    if not (named := [part.strip() for part in _read(name).split(",") if part.strip()]):
        return _recorded(name, list(default))
    try:
        folders = [Path(part).expanduser() for part in named]
    except RuntimeError as error:
        raise ImproperlyConfigured(f"{name} names the home folder of a user who does not exist.") from error
    if relative := [str(it) for it in folders if not it.is_absolute()]:
        raise ImproperlyConfigured(f"{name} must contain absolute paths, not {relative[0]!r}.")
    return _recorded(name, folders)


def usable_folder(path: Path) -> Path:
    """Return a writable folder, created if missing."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        is_usable = os.access(path, os.R_OK | os.W_OK | os.X_OK)
    except OSError:
        is_usable = False
    if is_usable:
        return path
    raise ImproperlyConfigured(f"This user cannot write to {path}. Set CORECUBE_VAR_DIR to another data folder.")


def secret_key(path: Path) -> str:
    """Return the secret key, created on first use and readable only by its owner."""
    if not path.exists():
        # Linked when complete: of two concurrent processes one wins, and none reads a partial key.
        with tempfile.NamedTemporaryFile("w", dir=path.parent, encoding="ascii") as file:
            file.write(secrets.token_urlsafe(50))
            file.flush()
            with suppress(FileExistsError):
                os.link(file.name, path)
    return path.read_text(encoding="ascii").strip()


def folder_roots() -> list[Path]:
    """Return the folders below which connections may read files: the home folder and common data folders.

    A home folder of `/`, as in some containers, is excluded.
    """
    try:
        home = Path(pwd.getpwuid(os.geteuid()).pw_dir)
    except KeyError:
        home = Path(os.environ.get("HOME", "/"))
    places = [Path(place) for place in ("/srv", "/mnt", "/media", "/data")]
    return [home, *places] if home.is_absolute() and home.resolve() != Path("/") else places


def file_queue(folder: Path) -> dict[str, Any]:
    """Create the folders of a file-based queue, and return its options."""
    messages = folder / "messages"
    messages.mkdir(parents=True, exist_ok=True)
    return {
        "data_folder_in": str(messages),
        "data_folder_out": str(messages),
        "control_folder": str(folder / "control"),
        "store_processed": False,
        # Seconds between two looks for a message.
        "polling_interval": 0.2,
    }
