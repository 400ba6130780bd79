"""`manage.py bm25`: the BM25 index of this machine."""

from argparse import ArgumentParser
from collections.abc import Callable
from time import sleep
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from corecube.commands import DatabaseCommand
from corecube.errors import CoreCubeError
from retrieval.index.bm25 import follower
from retrieval.index.bm25.follower import bm25_status

_MIB = 2**20


class Command(DatabaseCommand):
    """Show, update or rebuild the BM25 index of this machine."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True, metavar="status|follow|rebuild")
        actions.add_parser("status", help="chunks, size and lag")
        follow = actions.add_parser("follow", help="apply changes of the database; builds a missing index")
        follow.add_argument("--every", type=float, default=0, metavar="SECONDS", help="repeat until stopped")
        actions.add_parser("rebuild", help="build a new index, then replace the current one")

    def handle(self, *_: Any, **options: Any) -> None:
        if not settings.CORECUBE_BM25:
            raise CommandError("This machine has no BM25 index: CORECUBE_BM25 is off.")
        try:
            getattr(self, f"_{options['action']}")(options)
        except CoreCubeError as error:
            raise CommandError(f"{error} {error.__cause__ or ''}".strip()) from error

    def _status(self, _: dict[str, Any]) -> None:
        found = bm25_status()
        if found.is_readable:
            self.stdout.write(f"{found.chunks:,} chunks, {found.bytes / _MIB:,.1f} MiB, up to {found.position}")
            self.stdout.write(f"lag: {found.lag.transactions:,} transactions, {found.lag.seconds:.1f} s")
        if found.problem:
            self.stdout.write(found.problem)

    def _follow(self, options: dict[str, Any]) -> None:
        self._run(follower.follow)
        while options["every"]:
            sleep(options["every"])
            follower.follow()

    def _rebuild(self, _: dict[str, Any]) -> None:
        self._run(follower.rebuild)

    def _run(self, do: Callable[..., follower.Followed | None]) -> None:
        with self.bar("chunks") as bar:
            done = do(progress=lambda chunks: bar.update(chunks - bar.n))
        if done is None:
            raise CommandError("Another process is writing the index.")
        what = "Rebuilt" if done.is_rebuilt else "Updated"
        self.stdout.write(f"{what}: {done.changes:,} changes, up to {done.position}.")
