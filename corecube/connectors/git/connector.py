"""Lists the files of a branch and reads them from the local copy."""

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self
from urllib.parse import quote, unquote, urlsplit

from dulwich.client import GitClient
from dulwich.object_store import MaxTreeDepthExceeded
from dulwich.objects import S_ISGITLINK, Blob, Commit, ObjectID, TreeEntry
from dulwich.repo import Repo
from pydantic import Field

from corecube.connectors.git.clients import CONTROL, GuardedGitClient, GuardedLocalClient, Meter
from corecube.connectors.git.mirror import Dates, Mirror, Remote
from corecube.connectors.globs import Globs
from corecube.connectors.http import basic_authorization
from corecube.connectors.network import checked_field
from corecube.connectors.setup import FieldError, SourceConfig, SourceSetup, too_large
from corecube.connectors.types import Capability, Connector, ItemError, ItemProblem, SourceItem
from corecube.errors import ConfigError, CoreCubeError, UnavailableError

_LFS: Final = b"version https://git-lfs.github.com/spec/"
_LFS_BYTES: Final = 1024
_BRANCH: Final = re.compile(r"[^\x00-\x20~^:?*\[\\\x7f/.-][^\x00-\x20~^:?*\[\\\x7f]*")
_NOT_IN_BRANCHES: Final = ("..", "//", "@{")
#: Path of a file's page on public git hosts.
_LINKS: Final = {
    "github.com": "/blob/{branch}/{path}",
    "gitlab.com": "/-/blob/{branch}/{path}",
    "codeberg.org": "/src/branch/{branch}/{path}",
    "bitbucket.org": "/src/{branch}/{path}",
}


class GitConfig(SourceConfig):
    """The repository and branch of a connection."""

    url: str = Field(
        description="https://host/path.git, or file:///path of a repository below one of CORECUBE_FOLDER_ROOTS."
    )
    branch: str = Field("", max_length=250, description="Empty for the default branch.")
    user: str = Field("", max_length=200, description="User of the token, if the host requires one.")
    link: str = Field("", max_length=500, description="Link to a file: https://…/{branch}/{path}, {commit}.")
    history: bool = Field(default=False, description="Fetch the history for the date of each file's last change.")
    max_repository_bytes: int = Field(2 * 2**30, ge=1, description="Maximum size of one fetch.")
    timeout_seconds: float = Field(600.0, gt=0, le=86_400, description="Maximum time of one fetch.")


@dataclass(frozen=True)
class GitConnector(Connector):
    """Reads the files of a branch's newest commit. Hidden files and folders are excluded, links are not followed."""

    mirror: Mirror
    dates: Dates | None
    globs: Globs
    max_bytes: int
    link: str  #: Template of a file's address for users.

    @classmethod
    def from_setup(cls, setup: SourceSetup) -> Self:
        """Return the connector of a connection with the optional secret `token`; raise ConfigError."""
        config = setup.read(GitConfig)
        is_branch = _BRANCH.fullmatch(config.branch) and not config.branch.endswith(".lock")
        if config.branch and (not is_branch or any(part in config.branch for part in _NOT_IN_BRANCHES)):
            raise FieldError("branch", f"This is not a branch name: {config.branch!r}.")
        limit = setup.limit(config.max_bytes)
        meter = Meter(config.max_repository_bytes)
        client, path = _client(config, setup, meter)
        remote = Remote(client, path, config.branch, meter, config.timeout_seconds, limit)
        mirror = Mirror(setup.state / ("history" if config.history else "newest"), remote, config.history)
        dates = Dates(setup.state / "dates.json") if config.history else None
        return cls(mirror, dates, config.globs(), limit, _link(config))

    def preflight(self) -> Iterator[Capability]:
        """Yield reach, authenticate and list; git combines the first two in one request."""
        try:
            branch, _ = self.mirror.remote.head()
        except (UnavailableError, ItemError) as error:
            yield Capability.failed("reach", str(error))
        except ConfigError as error:
            yield Capability.passed("reach", "The server answers.")
            refused = "refuses" in str(error)
            if not refused:
                yield Capability.passed("authenticate", "The server allows access.")
            yield Capability.failed("authenticate" if refused else "list", str(error))
        else:
            yield Capability.passed("reach", "The server answers.")
            yield Capability.passed("authenticate", "The server allows access.")
            yield Capability.passed("list", f"The branch {branch} exists.")

    def items(self) -> Iterator[SourceItem | ItemProblem]:
        """Fetch the changes and yield the branch's files in git's order; raise ConfigError, UnavailableError."""
        try:
            branch, commit = self.mirror.update()
        except ItemError as error:
            raise UnavailableError(str(error)) from error
        with self.mirror.repo() as repo:
            entries = self._entries(repo, commit)
            files = {entry.path: entry.sha for entry in entries if stat.S_ISREG(entry.mode)}
            dates = self.dates.of(repo, commit, files) if self.dates else {}
            for entry in entries:
                path = entry.path.decode("utf-8", "backslashreplace")
                is_hidden = any(part.startswith(".") for part in path.split("/"))
                if not is_hidden and self.globs.includes(path):
                    link, blob = self._address(path, branch, commit), entry.sha.decode()
                    yield _problem(entry, path) or SourceItem(
                        path, path, link, blob, dates.get(entry.path), version=blob
                    )

    def read(self, item: SourceItem) -> bytes:
        """Return a file's bytes; raise ItemError if it is too large, in Git LFS or deleted."""
        blob = self.mirror.blob(item.locator)
        if blob is None:
            blob = self._fetched(item.locator)
        if (size := blob.raw_length()) > self.max_bytes:
            raise too_large(size, self.max_bytes)
        content = blob.as_raw_string()
        if size < _LFS_BYTES and content.startswith(_LFS):
            raise ItemError("lfs_pointer", "The file is stored in Git LFS, which is not supported.")
        return content

    def _fetched(self, blob_id: str) -> Blob:
        """Fetch a blob that the copy lacks: another machine may have listed it."""
        try:
            self.mirror.update()
        except CoreCubeError as error:
            reason = "unavailable" if isinstance(error, UnavailableError) else "unreadable"
            raise ItemError(reason, f"The file cannot be fetched. {error}") from error
        if blob := self.mirror.blob(blob_id):
            return blob
        raise ItemError("too_large", "The server did not send the file: it is too large or has changed.")

    def _entries(self, repo: Repo, commit: ObjectID) -> list[TreeEntry]:
        found = repo[commit]
        try:
            return list(repo.object_store.iter_tree_contents(found.tree)) if isinstance(found, Commit) else []
        except MaxTreeDepthExceeded as error:
            raise UnavailableError("The repository's folders are nested too deeply.") from error
        except (KeyError, ValueError) as error:
            self.mirror.remove()
            raise UnavailableError("The repository's copy is damaged. The next sync fetches a new one.") from error

    def _address(self, path: str, branch: str, commit: ObjectID) -> str:
        parts = {"branch": branch, "commit": commit.decode(), "path": path}
        return re.sub(r"\{(branch|commit|path)\}", lambda found: quote(parts[found[1]], safe="/"), self.link)


def _client(config: GitConfig, setup: SourceSetup, meter: Meter) -> tuple[GitClient, bytes]:
    token = setup.secret("token")
    parts = urlsplit(config.url)
    if parts.scheme == "file" and not parts.netloc:
        path = unquote(parts.path)
        try:
            setup.local.require(Path(path), shown=CONTROL)
        except ConfigError as error:
            raise FieldError("url", str(error)) from error
        return GuardedLocalClient(setup.local), os.fsencode(path)
    url = checked_field("url", config.url, "The URL must begin with https:// or file://.")
    credentials = basic_authorization(config.user or "x-access-token", token) if token else {}
    return GuardedGitClient(url, credentials=credentials, meter=meter), b""


def _link(config: GitConfig) -> str:
    """Return the template of a file's address for users, empty without one; raise ConfigError."""
    if config.link and urlsplit(config.link).scheme not in {"http", "https"}:
        raise FieldError("link", "The link must begin with https://.")
    parts = urlsplit(config.url)
    shown = _LINKS.get(parts.hostname or "", "")
    return config.link or (f"https://{parts.hostname}{parts.path.removesuffix('.git')}{shown}" if shown else "")


def _problem(entry: TreeEntry, path: str) -> ItemProblem | None:
    if S_ISGITLINK(entry.mode):
        return ItemProblem(path, "submodule", "A submodule is another repository. Add a separate connection for it.")
    if stat.S_ISLNK(entry.mode):
        return ItemProblem(path, "symlink", "Links are not followed.")
    return None
