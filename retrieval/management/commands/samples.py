"""`manage.py samples`: a fictional company with documents, to try CoreCube."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings

from corecube.commands import DatabaseCommand
from retrieval.evaluation.sample_questions import add_sample_questions, remove_sample_questions
from retrieval.ingest.samples import Company, add_samples, is_in_use, remove_samples
from retrieval.models import Sync


class Command(DatabaseCommand):
    """Add the sample company: compartments, users, documents and questions. Later runs restore missing parts."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        only = parser.add_mutually_exclusive_group()
        only.add_argument(
            "--once", action="store_true", help="do nothing if they were added before or other sources exist"
        )
        only.add_argument("--remove", action="store_true", help="remove them and their documents")

    def handle(self, *_: Any, **options: Any) -> str:
        company = Company.read(settings.CORECUBE_SAMPLES_DIR)
        if options["remove"]:
            remove_samples(company)
            remove_sample_questions()
            return "The samples were removed."
        if options["once"] and is_in_use(company):
            return ""
        accounts = add_samples(company, self._show)
        add_sample_questions(company)
        titles = {row["username"]: row["title"] for row in company.users}
        return "\n".join(f"{account.line()}  {titles[account.username]}" for account in accounts)

    def _show(self, sync: Sync) -> None:
        self.stdout.write(f"{sync.connection.name}, document {sync.seen}")
