"""Private file permissions: for new files, and for existing ones of an earlier release."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def write_privately() -> None:
    """Make new files of this process and its children private."""
    os.umask(_OTHERS)


def make_private(path: Path) -> bool:
    """Remove the permissions of other accounts; return False if this account may not change them."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & _OTHERS:
            path.chmod(mode & ~_OTHERS)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def make_all_private(folder: Path) -> Iterator[Path]:
    """Make the content of a folder private, except links; yield what could not be changed."""
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(place, name)
            if not path.is_symlink() and not make_private(path):
                yield path
