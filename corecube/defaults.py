"""Defaults that an installation creates itself. Used by `settings.py`."""

import os
import pwd
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any


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
    }
