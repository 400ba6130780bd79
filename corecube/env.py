"""Typed reads of the environment; only `settings.py` uses them. Junk is refused, never guessed at.

What was read is remembered, so that the console and `manage.py showconfig` can say what is set and where.
"""

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import ip_network
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from corecube.metadata_addresses import REFUSAL, names_refused

_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})
_FOLDER_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*", re.ASCII | re.IGNORECASE)
_IDENTIFIER = re.compile(r"([a-z_][a-z0-9_]*\.)?[a-z_][a-z0-9_]*", re.ASCII | re.IGNORECASE)


_T = TypeVar("_T")


class Origin(StrEnum):
    """Where a setting's value comes from."""

    ENVIRONMENT = "environment"
    #: The file that `NAME_FILE` names.
    FILE = "file"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Reading:
    """A variable that the settings are made of."""

    name: str
    #: As people read it; of a secret only whether there is one.
    value: str
    origin: Origin

    @property
    def is_locked(self) -> bool:
        """Whether it was set from outside, so that only who starts the process can change it."""
        return self.origin is not Origin.DEFAULT


_readings: Final[dict[str, Reading]] = {}
_files: Final[set[Path]] = set()


def readings() -> tuple[Reading, ...]:
    """Return every variable that was read, by name, without secrets."""
    return tuple(_readings[name] for name in sorted(_readings))


def files_named() -> frozenset[Path]:
    """Return the files that variables `NAME_FILE` were read from; most hold a secret."""
    return frozenset(_files)


def _noted(name: str, value: _T, *, secret: bool = False) -> _T:
    """Remember what a variable came to, and return it."""
    shown = ("set" if value else "not set") if secret else _shown(value)
    _readings[name] = Reading(name, shown, _origin(name))
    return value


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Iterable) and not isinstance(value, str):
        return ", ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _origin(name: str) -> Origin:
    if os.environ.get(f"{name}_FILE"):
        return Origin.FILE
    return Origin.ENVIRONMENT if os.environ.get(name, "").strip() else Origin.DEFAULT


def env_str(name: str, default: str = "") -> str:
    """Return the variable, or the content of the file that `NAME_FILE` points to."""
    return _noted(name, _read(name, default))


def env_secret(name: str) -> str:
    """Return a variable that nobody is shown, or the content of its file; empty when there is none."""
    return _noted(name, _read(name), secret=True)


def _read(name: str, default: str = "") -> str:
    if path := os.environ.get(f"{name}_FILE"):
        _files.add(Path(path).absolute())
        try:
            return Path(path).read_text(encoding="utf-8").strip()
        except OSError as error:
            message = f"{name}_FILE points to {path}, which cannot be read."
            raise ImproperlyConfigured(message) from error
    return os.environ.get(name, default).strip()


def env_bool(name: str, *, default: bool) -> bool:
    """Return a yes/no variable; anything but 1/0, true/false, yes/no, on/off is an error."""
    value = _read(name).lower()
    if not value:
        return _noted(name, default)
    if value in _TRUE | _FALSE:
        return _noted(name, value in _TRUE)
    message = f"{name} must be yes or no, not {value!r}."
    raise ImproperlyConfigured(message)


def env_int(name: str, default: int, *, low: int, high: int) -> int:
    """Return a whole number within `low` to `high`, both allowed."""
    value = _read(name)
    try:
        number = int(value) if value else default
    except ValueError as error:
        message = f"{name} must be a whole number, not {value!r}."
        raise ImproperlyConfigured(message) from error
    if low <= number <= high:
        return _noted(name, number)
    message = f"{name} must lie between {low} and {high}, not {number}."
    raise ImproperlyConfigured(message)


def env_float(name: str, default: float, *, low: float, high: float) -> float:
    """Return a number within `low` to `high`, both allowed."""
    value = _read(name)
    try:
        number = float(value) if value else default
    except ValueError as error:
        message = f"{name} must be a number, not {value!r}."
        raise ImproperlyConfigured(message) from error
    if low <= number <= high:
        return _noted(name, number)
    message = f"{name} must lie between {low:g} and {high:g}, not {number:g}."
    raise ImproperlyConfigured(message)


def env_choice(name: str, default: str, choices: Sequence[str]) -> str:
    """Return one of the choices as it is written there, capitals and small letters taken as the same."""
    value = _read(name)
    if not value:
        return _noted(name, default)
    for choice in choices:
        if choice.casefold() == value.casefold():
            return _noted(name, choice)
    message = f"{name} must be one of {', '.join(choices)}, not {value!r}."
    raise ImproperlyConfigured(message)


def env_identifier(name: str, default: str) -> str:
    """Return a plain SQL name, with its schema and a dot where there is one."""
    value = _read(name) or default
    if _IDENTIFIER.fullmatch(value):
        return _noted(name, value)
    message = f"{name} must be a name of letters, digits and underscores, not {value!r}."
    raise ImproperlyConfigured(message)


def env_folder_name(name: str) -> str:
    """Return the name of a folder, never a path; empty when the variable is."""
    value = _read(name)
    if not value or _FOLDER_NAME.fullmatch(value):
        return _noted(name, value)
    message = f"{name} must be a name of letters, digits, dots and hyphens, not {value!r}."
    raise ImproperlyConfigured(message)


def env_url(name: str) -> str:
    """Return the address of an HTTP service, empty when the variable is; one that holds a password is an error."""
    value = _read(name)
    try:
        parts = urlsplit(value)
        is_address = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if value and not (is_address and value.isascii() and value.isprintable() and " " not in value):
        # Not repeated: it may hold a password in the wrong place.
        raise ImproperlyConfigured(f"{name} must be an address such as https://host/path.")
    if value and names_refused(parts.hostname or ""):
        raise ImproperlyConfigured(f"{name} cannot be used. {REFUSAL}")
    if value and (parts.username is not None or parts.password is not None):
        raise ImproperlyConfigured(f"{name} must not hold a user or a password.")
    # What follows the question mark can be a key.
    _noted(name, value.partition("?")[0])
    return value


def env_token(name: str) -> str:
    """Return a secret that goes into a header: visible ASCII signs; empty when the variable is."""
    value = _read(name)
    if not value or (value.isascii() and value.isprintable() and " " not in value):
        return _noted(name, value, secret=True)
    raise ImproperlyConfigured(f"{name} must be of visible ASCII signs without blanks.")


def env_list(name: str, default: str = "") -> list[str]:
    """Return the comma-separated parts of a variable, without blanks."""
    return _noted(name, [part.strip() for part in _read(name, default).split(",") if part.strip()])


def env_networks(name: str) -> list[str]:
    """Return the comma-separated addresses and networks of a variable; "*" by itself stands for any."""
    values = env_list(name)
    for value in values:
        try:
            ip_network(value)
        except ValueError as error:
            if values != ["*"]:
                message = f"{name} must hold addresses and networks such as 10.0.0.0/8, or only *; not {value!r}."
                raise ImproperlyConfigured(message) from error
    return values


def env_path(name: str, default: Path) -> Path:
    """Return a path, made absolute."""
    value = _read(name)
    return _noted(name, Path(value).expanduser().resolve() if value else default)


def env_folders(name: str, default: Iterable[Path]) -> list[Path]:
    """Return the comma-separated folders of a variable; one that does not begin at the root or a home is an error."""
    if not (named := [part.strip() for part in _read(name).split(",") if part.strip()]):
        return _noted(name, list(default))
    try:
        folders = [Path(part).expanduser() for part in named]
    except RuntimeError as error:
        raise ImproperlyConfigured(f"{name} names the home folder of a user who does not exist.") from error
    if relative := [str(it) for it in folders if not it.is_absolute()]:
        raise ImproperlyConfigured(f"{name} must name folders from the root on, not {relative[0]!r}.")
    return _noted(name, folders)


def usable_folder(path: Path) -> Path:
    """Return a folder, made if missing; one that this user cannot write to is an error."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        is_usable = os.access(path, os.R_OK | os.W_OK | os.X_OK)
    except OSError:
        is_usable = False
    if is_usable:
        return path
    message = f"This user cannot write to {path}; CORECUBE_VAR_DIR names another folder for CoreCube's data."
    raise ImproperlyConfigured(message)
