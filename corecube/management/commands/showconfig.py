"""`manage.py showconfig`: every setting with its value and where that comes from."""

from typing import Any

from django.core.management.base import BaseCommand

from corecube.env import readings


class Command(BaseCommand):
    """Print what the environment sets and what is left at its default; of secrets only whether they are set."""

    help = "Print every setting with its value and its origin: environment, file or default."
    # It tells what is set, also where that is wrong.
    requires_system_checks = ()

    def handle(self, *_: Any, **__: Any) -> None:
        found = readings()
        names = max(len(reading.name) for reading in found)
        for reading in found:
            self.stdout.write(f"{reading.name:<{names}}  {reading.origin.value:<11}  {reading.value or '-'}")
