"""Files for this account alone: what a process writes, and what an earlier release left open to others."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def write_privately() -> None:
    """Let what this process and its children make be for their account alone."""
    os.umask(_OTHERS)


def make_private(path: Path) -> bool:
    """Take a file or folder from all other accounts; return False where this account may not do that."""
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
    """Do the same with all that a folder holds, and yield what stays open. Links are left alone."""
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(place, name)
            if not path.is_symlink() and not make_private(path):
                yield path
