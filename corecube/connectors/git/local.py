"""A repository on this machine, read only where connections may read."""

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from dulwich.client import LocalGitClient
from dulwich.object_store import BaseObjectStore, DiskObjectStore
from dulwich.repo import Repo

from corecube.connectors.local_files import LocalFiles
from corecube.errors import ConfigError

#: The one hidden folder that belongs to a repository.
CONTROL: Final = frozenset({".git"})
#: A store that borrows from others in a circle would be followed for ever.
_MAX_STORES: Final = 100


class GuardedLocalClient(LocalGitClient):
    """Opens repositories whose every part lies where connections may read.

    A repository can keep its parts elsewhere: a file `.git`, `commondir` and `alternates` name other folders.
    """

    def __init__(self, local: LocalFiles) -> None:
        super().__init__(quiet=True)
        self._local = local

    def _open_repo(self, path: str | bytes) -> "closing[Repo]":  # type: ignore[override]  # dulwich's is of the class
        """Return the repository, opened; raise ConfigError."""
        self._local.require(Path(os.fsdecode(path)), shown=CONTROL)
        opened = super()._open_repo(path)
        try:
            self._require_parts(opened.thing)  # type: ignore[attr-defined]  # not in the stubs
        except BaseException:
            opened.thing.close()  # type: ignore[attr-defined]
            raise
        return opened

    def _require_parts(self, repo: Repo) -> None:
        places = (Path(os.path.realpath(part)) for part in _parts(repo))
        if not all(self._local.allows(place, shown=CONTROL) for place in places):
            raise ConfigError(self._local.refusal)


def _parts(repo: Repo) -> Iterator[str | os.PathLike[str]]:
    """Yield the folders that a repository is read from."""
    yield from (repo.controldir(), repo.commondir())
    waiting: list[BaseObjectStore] = [repo.object_store]
    for _ in range(_MAX_STORES):
        if not waiting:
            return
        store = waiting.pop()
        if isinstance(store, DiskObjectStore):
            yield from (store.path, store.pack_dir)
            waiting += store.alternates
    raise ConfigError("The repository borrows from too many others.")
