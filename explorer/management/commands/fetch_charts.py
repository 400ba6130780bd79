"""`manage.py fetch_charts`: the script that draws charts."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from explorer import plotly
from retrieval.errors import EncoderError


class Command(BaseCommand):
    """Fetch plotly.js from the package index, unless it is there."""

    help = "Fetch the script that draws charts from the Python package index, unless it is there; checks its sha256."
    requires_system_checks = ()

    def handle(self, *_: Any, **__: Any) -> None:
        try:
            plotly.fetch_script(self.stdout.write)
        except EncoderError as error:
            raise CommandError(f"{error} Charts show their numbers as tables.") from error
        self.stdout.write(f"{plotly.script_path()} is ready.")
