"""Data that a crawl stores for the next one: validators and links by page, and bodies until they are read."""

import hashlib
import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, Self

_SCHEMA: Final = "CREATE TABLE IF NOT EXISTS page (url TEXT PRIMARY KEY, crawl INTEGER NOT NULL, facts TEXT NOT NULL)"
_COMMIT_EVERY: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page in its last known state; the names of the fields are stored on disk."""

    url: str
    etag: str = ""
    last_modified: str = ""
    digest: str  #: SHA-256 of the body.
    media_type: str  #: Content type with its parameters.
    modified_at: datetime | None = None
    index: bool = True
    canonical: str = ""
    links: tuple[str, ...] = ()


class CrawlStore:
    """Stores pages in a file during the context of one crawl; without the file, the next crawl is a full one."""

    def __init__(self, folder: Path, key: str) -> None:
        """Store pages below a folder. Pages of another key, which means another plan, are dropped."""
        self._folder = folder
        self._path = folder / f"pages-{key}.sqlite"
        self._bodies = folder / "bodies"
        self._database: sqlite3.Connection | None = None
        self._crawl = 0
        self._written = 0

    def __enter__(self) -> Self:
        """Start a crawl: open the store, recreate it if it is damaged, and delete the last crawl's bodies."""
        self._folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(self._bodies, ignore_errors=True)
        self._bodies.mkdir()
        for other in set(self._folder.glob("pages-*")) - {self._path}:
            other.unlink()
        try:
            self._open()
        except sqlite3.DatabaseError:
            self._path.unlink()
            self._open()
        return self

    def __exit__(self, *_: object) -> None:
        if self._database is not None:
            self._database.commit()
            self._database.close()
            self._database = None

    def page(self, url: str) -> Page | None:
        """Return a stored page, None for an unknown one."""
        row = self._run("SELECT facts FROM page WHERE url = ?", url).fetchone()
        if not row:
            return None
        facts = json.loads(row[0])
        when, links = facts.pop("modified_at"), tuple(facts.pop("links"))
        return Page(**facts, modified_at=datetime.fromisoformat(when) if when else None, links=links)

    def add(self, page: Page, content: bytes) -> None:
        """Store a page; its body stays on disk until the next crawl starts."""
        (self._bodies / page.digest).write_bytes(content)
        self.touch(page)

    def touch(self, page: Page) -> None:
        """Store a page with an unchanged body."""
        facts = {name: getattr(page, name) for name in Page.__slots__}
        text = json.dumps({**facts, "modified_at": page.modified_at and page.modified_at.isoformat()})
        self._run("INSERT OR REPLACE INTO page VALUES (?, ?, ?)", page.url, self._crawl, text)
        self._written += 1
        if self._written % _COMMIT_EVERY == 0:
            self._opened().commit()

    def unvisited(self) -> Iterator[str]:
        """Yield the addresses of earlier crawls that this crawl did not visit, in order."""
        rows = self._run("SELECT url FROM page WHERE crawl < ? ORDER BY url", self._crawl).fetchall()
        yield from (row[0] for row in rows)

    def forget_unvisited(self) -> None:
        """Delete the pages that this crawl did not visit."""
        self._run("DELETE FROM page WHERE crawl < ?", self._crawl)

    def body(self, digest: str) -> bytes | None:
        """Return a body of the newest crawl, None if it is not stored; the store need not be open."""
        with suppress(OSError):
            content = (self._bodies / digest).read_bytes()
            if digest_of(content) == digest:
                return content
        return None

    def _open(self) -> None:
        self._database = sqlite3.connect(self._path)
        self._run(_SCHEMA)
        self._crawl = self._run("SELECT coalesce(max(crawl), 0) + 1 FROM page").fetchone()[0]

    def _opened(self) -> sqlite3.Connection:
        if self._database is None:
            raise RuntimeError("The store is not open.")
        return self._database

    def _run(self, statement: str, *values: str | int) -> sqlite3.Cursor:
        return self._opened().execute(statement, values)


def digest_of(content: bytes) -> str:
    """Return the SHA-256 of a body as hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()
