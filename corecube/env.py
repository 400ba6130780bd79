"""Typed reads of the environment; only `settings.py` uses them. Junk is refused, never guessed at."""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})
_FOLDER_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*", re.ASCII | re.IGNORECASE)
_IDENTIFIER = re.compile(r"([a-z_][a-z0-9_]*\.)?[a-z_][a-z0-9_]*", re.ASCII | re.IGNORECASE)


def env_str(name: str, default: str = "") -> str:
    """Return the variable, or the content of the file that `NAME_FILE` points to."""
    if path := os.environ.get(f"{name}_FILE"):
        try:
            return Path(path).read_text(encoding="utf-8").strip()
        except OSError as error:
            message = f"{name}_FILE points to {path}, which cannot be read."
            raise ImproperlyConfigured(message) from error
    return os.environ.get(name, default).strip()


def env_bool(name: str, *, default: bool) -> bool:
    """Return a yes/no variable; anything but 1/0, true/false, yes/no, on/off is an error."""
    value = env_str(name).lower()
    if not value:
        return default
    if value in _TRUE | _FALSE:
        return value in _TRUE
    message = f"{name} must be yes or no, not {value!r}."
    raise ImproperlyConfigured(message)


def env_int(name: str, default: int, *, low: int, high: int) -> int:
    """Return a whole number within `low` to `high`, both allowed."""
    value = env_str(name)
    try:
        number = int(value) if value else default
    except ValueError as error:
        message = f"{name} must be a whole number, not {value!r}."
        raise ImproperlyConfigured(message) from error
    if low <= number <= high:
        return number
    message = f"{name} must lie between {low} and {high}, not {number}."
    raise ImproperlyConfigured(message)


def env_float(name: str, default: float, *, low: float, high: float) -> float:
    """Return a number within `low` to `high`, both allowed."""
    value = env_str(name)
    try:
        number = float(value) if value else default
    except ValueError as error:
        message = f"{name} must be a number, not {value!r}."
        raise ImproperlyConfigured(message) from error
    if low <= number <= high:
        return number
    message = f"{name} must lie between {low:g} and {high:g}, not {number:g}."
    raise ImproperlyConfigured(message)


def env_choice(name: str, default: str, choices: Sequence[str]) -> str:
    """Return one of the choices as it is written there, capitals and small letters taken as the same."""
    value = env_str(name)
    if not value:
        return default
    for choice in choices:
        if choice.casefold() == value.casefold():
            return choice
    message = f"{name} must be one of {', '.join(choices)}, not {value!r}."
    raise ImproperlyConfigured(message)


def env_identifier(name: str, default: str) -> str:
    """Return a plain SQL name, with its schema and a dot where there is one."""
    value = env_str(name) or default
    if _IDENTIFIER.fullmatch(value):
        return value
    message = f"{name} must be a name of letters, digits and underscores, not {value!r}."
    raise ImproperlyConfigured(message)


def env_folder_name(name: str) -> str:
    """Return the name of a folder, never a path; empty when the variable is."""
    value = env_str(name)
    if not value or _FOLDER_NAME.fullmatch(value):
        return value
    message = f"{name} must be a name of letters, digits, dots and hyphens, not {value!r}."
    raise ImproperlyConfigured(message)


def env_url(name: str) -> str:
    """Return the address of an HTTP service, empty when the variable is; one that holds a password is an error."""
    value = env_str(name)
    try:
        parts = urlsplit(value)
        is_address = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if value and not (is_address and value.isascii() and value.isprintable() and " " not in value):
        # Not repeated: it may hold a password in the wrong place.
        raise ImproperlyConfigured(f"{name} must be an address such as https://host/path.")
    if value and (parts.username is not None or parts.password is not None):
        raise ImproperlyConfigured(f"{name} must not hold a user or a password.")
    return value


def env_token(name: str) -> str:
    """Return a secret that goes into a header: visible ASCII signs; empty when the variable is."""
    value = env_str(name)
    if not value or (value.isascii() and value.isprintable() and " " not in value):
        return value
    raise ImproperlyConfigured(f"{name} must be of visible ASCII signs without blanks.")


def env_list(name: str, default: str = "") -> list[str]:
    """Return the comma-separated parts of a variable, without blanks."""
    return [part.strip() for part in env_str(name, default).split(",") if part.strip()]


def env_path(name: str, default: Path) -> Path:
    """Return a path, made absolute."""
    value = env_str(name)
    return Path(value).expanduser().resolve() if value else default


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
