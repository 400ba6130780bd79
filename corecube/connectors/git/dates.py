"""Dates of the last change of each file, from the history."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from dulwich.diff_tree import TreeChange
from dulwich.objects import ObjectID
from dulwich.repo import Repo

#: Maximum number of commits to search for files of unknown date.
_MAX_COMMITS: Final = 50_000
#: The end of the year 9999, the last date of datetime; a commit may have any time.
_MAX_TIMESTAMP: Final = 253_402_300_799


@dataclass(frozen=True)
class Dates:
    """Stores dates in a file, so that the next sync reads only the newest commits."""

    path: Path

    def of(self, repo: Repo, commit: ObjectID, files: Mapping[bytes, ObjectID]) -> dict[bytes, datetime]:
        """Return the date of the last commit that changed each file, for files found in the history.

        `files` maps paths to blob ids. Merge commits are skipped: their changes are in other commits.
        """
        known = self._load()
        found = {path: when for path, blob in files.items() if (when := known.get(_key(path, blob))) is not None}
        missing = files.keys() - found.keys()
        for path, when in _changes(repo, commit):
            if not missing:
                break
            if path in missing:
                missing.discard(path)
                found[path] = when
        self._save({_key(path, files[path]): when for path, when in found.items()})
        return {path: datetime.fromtimestamp(when, tz=UTC) for path, when in found.items()}

    def _load(self) -> dict[str, int]:
        with suppress(OSError, ValueError):
            loaded = json.loads(self.path.read_text(encoding="utf-8"))
            if isinstance(loaded, dict):
                return {key: when for key, when in loaded.items() if isinstance(when, int)}
        return {}

    def _save(self, dates: Mapping[str, int]) -> None:
        temporary = self.path.with_suffix(".new")
        temporary.write_text(json.dumps(dates), encoding="utf-8")
        temporary.replace(self.path)


def _changes(repo: Repo, commit: ObjectID) -> Iterator[tuple[bytes, int]]:
    """Yield path and time, in seconds, of every change, the newest commit first."""
    for entry in repo.get_walker(include=[commit], max_entries=_MAX_COMMITS):
        for change in entry.changes():
            if isinstance(change, TreeChange) and change.new and change.new.path:
                yield change.new.path, min(max(entry.commit.commit_time, 0), _MAX_TIMESTAMP)


def _key(path: bytes, blob: ObjectID) -> str:
    return f"{blob.decode()} {path.decode('utf-8', 'surrogateescape')!a}"
