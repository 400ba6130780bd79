"""The environment of an installation in a folder of a test's own."""

import os
from pathlib import Path

from django.conf import settings

from tests.race import until


def environment_of(folder: Path, **variables: str) -> dict[str, str]:
    """Return the environment of an installation in a folder, whatever servers the tests use."""
    inherited = {name: value for name, value in os.environ.items() if name not in {"DATABASE_URL", "REDIS_URL"}}
    return {**inherited, "CORECUBE_VAR_DIR": str(folder), **variables}


def link_downloads(folder: Path) -> None:
    """Let an installation in a folder use the models that this one has downloaded."""
    ours = settings.CORECUBE_MODELS_DIR
    ours.mkdir(exist_ok=True)
    (folder / "models").symlink_to(ours)


def wait_for_end_of_server(folder: Path) -> None:
    """Wait until an installation's database server has ended, some time after its last user."""
    until(lambda: not (folder / "postgres" / "postmaster.pid").exists())
