"""What an installation makes for itself where its environment says nothing. Read by `settings.py`."""

import os
import pwd
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any


def secret_key(path: Path) -> str:
    """Return the installation's secret key, made on first use and readable by its owner only."""
    if not path.exists():
        # Linked into place when it is whole: of two processes at once one wins, and neither reads half a key.
        with tempfile.NamedTemporaryFile("w", dir=path.parent, encoding="ascii") as file:
            file.write(secrets.token_urlsafe(50))
            file.flush()
            with suppress(FileExistsError):
                os.link(file.name, path)
    return path.read_text(encoding="ascii").strip()


def folder_roots() -> list[Path]:
    """Return the folders below which connections may read files: the account's home and where data is usually put.

    A home at the root, as some containers have it, would open everything and is left out.
    """
    try:
        home = Path(pwd.getpwuid(os.geteuid()).pw_dir)
    except KeyError:
        home = Path(os.environ.get("HOME", "/"))
    places = [Path(place) for place in ("/srv", "/mnt", "/media", "/data")]
    return [home, *places] if home.is_absolute() and home.resolve() != Path("/") else places


def file_queue(folder: Path) -> dict[str, Any]:
    """Return the options of the queue that is kept in files, with its folders made."""
    messages = folder / "messages"
    messages.mkdir(parents=True, exist_ok=True)
    return {
        "data_folder_in": str(messages),
        "data_folder_out": str(messages),
        "control_folder": str(folder / "control"),
        "store_processed": False,
    }
