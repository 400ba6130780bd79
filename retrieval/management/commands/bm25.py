"""`manage.py bm25`: the BM25 index of this machine."""

from argparse import ArgumentParser
from time import sleep
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from tqdm import tqdm

from corecube.commands import DatabaseCommand
from corecube.errors import CoreCubeError
from retrieval.index.bm25 import follower
from retrieval.index.bm25.status import bm25_status

_MIB = 2**20


class Command(DatabaseCommand):
    """Show the BM25 index, let it follow the database, build it anew."""

    help = "Show the BM25 index of this machine, let it follow the database, build it anew."

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True, metavar="status|follow|rebuild")
        actions.add_parser("status", help="chunks, size, how far it is behind")
        follow = actions.add_parser("follow", help="take over what changed; without an index, build one")
        follow.add_argument("--every", type=float, default=0, metavar="SECONDS", help="go on until stopped")
        actions.add_parser("rebuild", help="build it anew beside the one that is searched, and switch")

    def handle(self, *_: Any, **options: Any) -> None:
        if not settings.CORECUBE_BM25:
            raise CommandError("This machine keeps no BM25 index: CORECUBE_BM25 is off.")
        try:
            getattr(self, f"_{options['action']}")(options)
        except CoreCubeError as error:
            raise CommandError(f"{error} {error.__cause__ or ''}".strip()) from error

    def _status(self, _: dict[str, Any]) -> None:
        found = bm25_status()
        if found.is_readable:
            self.stdout.write(f"{found.chunks:,} chunks, {found.bytes / _MIB:,.1f} MiB, up to {found.position}")
            self.stdout.write(f"behind: {found.lag.transactions:,} transactions, {found.lag.seconds:.1f} s")
        if found.problem:
            self.stdout.write(found.problem)

    def _follow(self, options: dict[str, Any]) -> None:
        self._tell(self._with_bar(follower.follow))
        while options["every"]:
            sleep(options["every"])
            follower.follow()

    def _rebuild(self, _: dict[str, Any]) -> None:
        self._tell(self._with_bar(follower.rebuild))

    def _with_bar(self, do: Any) -> follower.Followed | None:
        with tqdm(unit=" chunks", disable=None, file=self.stderr, leave=False) as bar:

            def progress(chunks: int) -> None:
                bar.update(chunks - bar.n)

            done: follower.Followed | None = do(progress=progress)
            return done

    def _tell(self, done: follower.Followed | None) -> None:
        if done is None:
            raise CommandError("Another process is writing the index just now.")
        what = "Built anew" if done.is_rebuilt else "Followed"
        self.stdout.write(f"{what}: {done.changes:,} changes, up to {done.position}.")
