"""When each file of a commit was last changed, by the history."""

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

#: Commits that are looked through for files whose date is not known yet.
_MAX_COMMITS: Final = 50_000


@dataclass(frozen=True)
class Dates:
    """Remembers dates in a file, so that the next sync looks at the newest commits only."""

    path: Path

    def of(self, repo: Repo, commit: ObjectID, files: Mapping[bytes, ObjectID]) -> dict[bytes, datetime]:
        """Return the date of the last commit that changed each file, as far as the history tells.

        `files` gives the blob id by path. Merges are not looked into: what they bring was changed before.
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
                yield change.new.path, _within_time(entry.commit.commit_time)


def _within_time(seconds: int) -> int:
    """Return a time that a date can hold: a commit may claim any."""
    return min(max(seconds, 0), 253_402_300_799)


def _key(path: bytes, blob: ObjectID) -> str:
    return f"{blob.decode()} {path.decode('utf-8', 'surrogateescape')!a}"
