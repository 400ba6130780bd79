"""plotly.js: one file of the package that brings it, served under a name that tells its version."""

import gzip
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.contrib.staticfiles.finders import BaseFinder
from django.core.files.storage import FileSystemStorage, Storage

VERSION: Final = version("plotly")
#: Its name among the static files. A new version gets a new address, so browsers may keep it for good.
NAME: Final = f"vendor/plotly-{VERSION}.min.js"
_NAMES: Final = (NAME, f"{NAME}.gz")


def packaged_script() -> Path:
    """Return the file in the package; without importing that, which takes its time."""
    spec = find_spec("plotly")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(name="plotly")
    return Path(spec.origin).parent / "package_data" / "plotly.min.js"


@cache
def served_script(folder: Path) -> Path:
    """Return a copy in `folder` with its gzip beside it, which is a third of the size; both made on first use."""
    path = folder / Path(NAME).name
    if not path.with_name(f"{path.name}.gz").exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as workspace:
            # Its bytes alone: the package's file is open to everybody.
            copy = Path(shutil.copyfile(packaged_script(), Path(workspace, path.name)))
            packed = copy.with_suffix(".gz")
            packed.write_bytes(gzip.compress(copy.read_bytes(), mtime=0))
            # Two processes may do this at once; each puts whole files in place, the copy before its gzip.
            copy.replace(path)
            packed.replace(path.with_name(f"{path.name}.gz"))
    return path


class ScriptStorage(FileSystemStorage):
    """Holds the file and its gzip."""

    def path(self, name: str) -> str:
        """Return where one of the two is."""
        script = served_script(settings.CORECUBE_VAR_DIR / "static")
        return str(script.with_name(Path(name).name))


class PlotlyFinder(BaseFinder):
    """Finds plotly.js among the static files, and nothing else of its package."""

    def __init__(self, *_: object, **__: object) -> None:
        self._storage = ScriptStorage()

    def check(self, **_: Any) -> list[Any]:  # noqa: ANN401 -- Django's signature
        """Return nothing: there is nothing to configure."""
        return []

    def find(self, path: str, find_all: bool = False, **_: Any) -> Any:  # noqa: ANN401, FBT001, FBT002 -- Django's signature
        """Return the file under its name, or nothing."""
        found = [self._storage.path(path)] if path in _NAMES else []
        return found if find_all or not found else found[0]

    def list(self, ignore_patterns: Iterable[str] | None) -> Iterator[tuple[str, Storage]]:  # noqa: ARG002 -- Django's signature
        """Yield the file and its gzip, which whoever serves the one looks for."""
        return ((name, self._storage) for name in _NAMES)
