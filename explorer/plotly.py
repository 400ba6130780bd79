"""plotly.js: one file of a wheel on the package index, served under a name with its version."""

import gzip
import tempfile
from pathlib import Path
from typing import Final

from django.conf import settings

from retrieval.encoders.catalog import SourceFile, WheelMember
from retrieval.encoders.fetch import Report, obtain

#: The wheel is only a container, and 14 times the size of the script: nothing of it is installed.
SCRIPT: Final = SourceFile(
    sha256="3b6e15d45dbb7fca5bd2094291e961ddc5472cd887009e6009a56dab668d721f",
    size_bytes=4_815_814,
    wheel=WheelMember("plotly", "7.1.0", "plotly/package_data/plotly.min.js"),
)
#: Its name among the static files. A new version gets a new address, so browsers may cache it forever.
NAME: Final = f"vendor/plotly-{SCRIPT.wheel.version}.min.js"


def script_path() -> Path:
    """Return where the script is once it is fetched; its gzip, a third of the size, is next to it."""
    return Path(settings.CORECUBE_SCRIPTS_DIR, Path(NAME).name)


def fetch_script(report: Report) -> None:
    """Fetch the script unless it is there; raise EncoderError when the package index does not deliver that file."""
    path = script_path()
    if _packed(path).exists():
        return
    with tempfile.TemporaryDirectory(dir=settings.CORECUBE_VAR_DIR) as workspace:
        script = obtain(SCRIPT, Path(workspace), use_hub=False, report=report)
        packed = _packed(script)
        packed.write_bytes(gzip.compress(script.read_bytes(), mtime=0))
        # Two processes may do this at once; each moves complete files into place, the script before its gzip.
        script.replace(path)
        packed.replace(_packed(path))


def _packed(path: Path) -> Path:
    return path.with_name(f"{path.name}.gz")
