"""What the commands of the read models have in common: `status`, `follow`, `reconcile` and `rebuild`."""

from argparse import ArgumentParser
from collections.abc import Callable
from time import sleep
from typing import Any, ClassVar

from django.core.management.base import CommandError

from corecube.commands import DatabaseCommand
from corecube.errors import CoreCubeError
from retrieval.index.following import PARTS, Followed, Follower

_MIB = 2**20


class ReadModelCommand(DatabaseCommand):
    """Show, update, check or rebuild a read model of this machine."""

    setting: ClassVar[str]  #: The setting that switches it on and off.

    def follower(self) -> Follower:
        """Return what keeps it."""
        raise NotImplementedError

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the four actions."""
        actions = parser.add_subparsers(dest="action", required=True, metavar="status|follow|reconcile|rebuild")
        actions.add_parser("status", help="chunks, size and lag")
        follow = actions.add_parser("follow", help="apply changes of the database; builds what is missing")
        follow.add_argument("--every", type=float, default=0, metavar="SECONDS", help="repeat until stopped")
        actions.add_parser("reconcile", help="compare all of it with the database, and replace what differs")
        actions.add_parser("rebuild", help="make a new build, then replace the current one")

    def handle(self, *_: Any, **options: Any) -> None:
        """Run the action; raise CommandError where this machine has no such read model."""
        if not self.follower().is_enabled:
            raise CommandError(f"This machine has no {self.follower().label}: {self.setting} is off.")
        try:
            getattr(self, f"_{options['action']}")(options)
        except CoreCubeError as error:
            raise CommandError(f"{error} {error.__cause__ or ''}".strip()) from error

    def _status(self, _: dict[str, Any]) -> None:
        found = self.follower().status()
        if found.is_readable:
            self.stdout.write(f"{found.chunks:,} chunks, {found.bytes / _MIB:,.1f} MiB, up to {found.position}")
            self.stdout.write(f"lag: {found.lag.transactions:,} transactions, {found.lag.seconds:.1f} s")
        if found.problem:
            self.stdout.write(found.problem)

    def _follow(self, options: dict[str, Any]) -> None:
        self._run(self.follower().follow)
        while options["every"]:
            sleep(options["every"])
            self.follower().follow()

    def _reconcile(self, _: dict[str, Any]) -> None:
        replaced = 0
        with self.bar("parts") as bar:
            for part in range(PARTS):
                found = self.follower().reconcile(part)
                if found is None:
                    raise CommandError(f"The {self.follower().label} is being written, or there is none: run follow.")
                replaced += found
                bar.update(1)
        self.stdout.write(f"Compared: {replaced:,} documents replaced.")

    def _rebuild(self, _: dict[str, Any]) -> None:
        self._run(self.follower().rebuild)

    def _run(self, do: Callable[..., Followed | None]) -> None:
        with self.bar("chunks") as bar:
            done = do(progress=lambda chunks: bar.update(chunks - bar.n))
        if done is None:
            raise CommandError(f"Another process is writing the {self.follower().label}.")
        what = "Rebuilt" if done.is_rebuilt else "Updated"
        self.stdout.write(f"{what}: {done.changes:,} changes, up to {done.position}.")
