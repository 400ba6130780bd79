"""`manage.py samples`: the invented company to try everything on."""

from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from corecube.commands import DatabaseCommand
from corecube.errors import CoreCubeError
from corecube.first_admin import NewAccount
from retrieval.ingest.samples import Company, add_samples, remove_samples, were_offered
from retrieval.models import Sync


class Command(DatabaseCommand):
    """Add the sample sources, or remove them."""

    help = "Add the sample company with its compartments, users and documents. Run again, it restores what is missing."

    def add_arguments(self, parser: ArgumentParser) -> None:
        only = parser.add_mutually_exclusive_group()
        only.add_argument(
            "--once", action="store_true", help="do nothing where they were added before, or other sources are"
        )
        only.add_argument("--remove", action="store_true", help="remove them and their documents")

    def handle(self, *_: Any, **options: Any) -> str:
        company = Company.read(settings.CORECUBE_SAMPLES_DIR)
        try:
            if options["remove"]:
                remove_samples(company)
                return "The samples were removed."
            if options["once"] and were_offered(company):
                return ""
            return _introduce(add_samples(company, self._show), company)
        except CoreCubeError as error:
            raise CommandError(str(error)) from error

    def _show(self, sync: Sync) -> None:
        self.stdout.write(f"{sync.connection.name}, document {sync.seen}")


def _introduce(accounts: Sequence[NewAccount], company: Company) -> str:
    """Return a line for each new account: name, password, who it is."""
    titles = {row["username"]: row["title"] for row in company.users}
    return "\n".join(f"{account.line()}  {titles[account.username]}" for account in accounts)
