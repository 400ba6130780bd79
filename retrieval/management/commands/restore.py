"""`manage.py restore`: restore or check a backup."""

from argparse import ArgumentParser
from typing import Any

from corecube.backup.restore import Restored, checked, listed, restore
from corecube.checks import require_server
from corecube.commands import CoreCubeCommand
from retrieval.index.restored import complete

_MB = 10**6


class Command(CoreCubeCommand):
    """Restore a backup into an installation that is stopped. Everything is checked before anything is changed."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("source", help="folder or s3://bucket/prefix with the backups")
        parser.add_argument("--name", default="", help="the backup (default: the newest)")
        parser.add_argument("--replace", action="store_true", help="replace an installation that has data")
        action = parser.add_mutually_exclusive_group()
        action.add_argument("--list", action="store_true", help="only list the backups")
        action.add_argument("--check", action="store_true", help="only read and check the backup")

    def handle(self, *_: Any, **options: Any) -> None:
        place, name = options["source"], options["name"]
        if options["list"]:
            for found in listed(place):
                self._describe(found)
            return
        with self.steps() as report:
            if options["check"]:
                found = checked(place, name, report=report)
            else:
                require_server()
                found = restore(place, name, replace=options["replace"], finish=complete, report=report)
        self._describe(found)
        self.stdout.write("It is whole." if options["check"] else _next_steps(found))

    def _describe(self, found: Restored) -> None:
        it = found.manifest
        self.stdout.write(
            f"{found.name}: CoreCube {it.version}, PostgreSQL {it.postgresql}, {it.rows:,} rows, "
            f"{len(it.files):,} uploads, {it.size / _MB:,.1f} MB"
        )


def _next_steps(found: Restored) -> str:
    models = ", ".join(found.manifest.models)
    needs = f" It requires the models {models}." if models else ""
    return f"Restored.{needs} Start CoreCube; users must sign in again."
