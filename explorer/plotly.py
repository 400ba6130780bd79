"""plotly.js: one file of a wheel on the package index, served under a name that tells its version."""

import gzip
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.contrib.staticfiles.finders import BaseFinder
from django.core.files.storage import FileSystemStorage, Storage

from retrieval.encoders.catalog import SourceFile, WheelMember
from retrieval.encoders.sources import Report, obtain

#: The wheel is only a container, and 14 times the size of the script: nothing of it is installed.
SCRIPT: Final = SourceFile(
    sha256="3b6e15d45dbb7fca5bd2094291e961ddc5472cd887009e6009a56dab668d721f",
    size_bytes=4_815_814,
    wheel=WheelMember("plotly", "7.1.0", "plotly/package_data/plotly.min.js"),
)
#: Its name among the static files. A new version gets a new address, so browsers may keep it for good.
NAME: Final = f"vendor/plotly-{SCRIPT.wheel.version}.min.js"
_NAMES: Final = (NAME, f"{NAME}.gz")


def script_path() -> Path:
    """Return where the script is once it is fetched; its gzip, a third of the size, is next to it."""
    return Path(settings.CORECUBE_VAR_DIR, "static", Path(NAME).name)


def is_fetched() -> bool:
    """Return whether the script and its gzip are there."""
    return _packed(script_path()).exists()


def fetch_script(report: Report) -> None:
    """Fetch the script unless it is there; raise EncoderError when the package index does not deliver that file."""
    if is_fetched():
        return
    path = script_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as workspace:
        script = obtain(SCRIPT, Path(workspace), use_hub=False, report=report)
        packed = _packed(script)
        packed.write_bytes(gzip.compress(script.read_bytes(), mtime=0))
        # Two processes may do this at once; each puts whole files in place, the script before its gzip.
        script.replace(path)
        packed.replace(_packed(path))


def _packed(path: Path) -> Path:
    return path.with_name(f"{path.name}.gz")


class ScriptStorage(FileSystemStorage):
    """Holds the file and its gzip."""

    def path(self, name: str) -> str:
        """Return where one of the two is."""
        return str(script_path().with_name(Path(name).name))


class PlotlyFinder(BaseFinder):
    """Finds plotly.js among the static files once it is fetched."""

    def __init__(self, *_: object, **__: object) -> None:
        self._storage = ScriptStorage()

    def check(self, **_: Any) -> list[Any]:  # noqa: ANN401 -- Django's signature
        """Return nothing: there is nothing to configure."""
        return []

    def find(self, path: str, find_all: bool = False, **_: Any) -> Any:  # noqa: ANN401, FBT001, FBT002 -- Django's signature
        """Return the file under its name, or nothing."""
        found = [self._storage.path(path)] if path in _NAMES and is_fetched() else []
        return found if find_all or not found else found[0]

    def list(self, ignore_patterns: Iterable[str] | None) -> Iterator[tuple[str, Storage]]:  # noqa: ARG002 -- Django's signature
        """Yield the file and its gzip, which the static file server looks for."""
        return ((name, self._storage) for name in _NAMES if is_fetched())
