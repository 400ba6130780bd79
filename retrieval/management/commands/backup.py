"""`manage.py backup`: back up the database, the uploads and the secret key."""

from argparse import ArgumentParser
from typing import Any

from corecube.backup.create import back_up
from corecube.commands import DatabaseCommand
from corecube.errors import BackupError
from retrieval.operations.backups import backup_request

_MB = 10**6


class Command(DatabaseCommand):
    """Back up the database, the uploads and the secret key, check the backup, and delete old ones.

    CoreCube may run meanwhile. CORECUBE_BACKUP_PASSPHRASE encrypts.
    """

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "to", nargs="?", default="", help="folder or s3://bucket/prefix (default: CORECUBE_BACKUP_TO)"
        )
        parser.add_argument("--keep", type=int, default=0, metavar="N", help="newest backups that remain there")
        parser.add_argument("--fast", action="store_true", help="do not rest in between, which searches notice")

    def handle(self, *_: Any, **options: Any) -> None:
        if options["keep"] < 0:
            raise BackupError("--keep must be at least 1.")
        with self.steps() as report:
            made = back_up(backup_request(options["to"], options["keep"], is_fast=options["fast"]), report=report)
        self.stdout.write(
            f"Backup {made.name} in {made.place}: {made.size / _MB:,.1f} MB, of which {made.added / _MB:,.1f} MB were "
            "written, compressed. It was read again and is whole."
        )
