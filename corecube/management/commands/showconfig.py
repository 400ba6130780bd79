"""`manage.py showconfig`: all settings with their values and origins."""

from typing import Any

from django.core.management.base import BaseCommand

from corecube.env import readings


class Command(BaseCommand):
    """Print all settings; for secrets only whether they are set."""

    help = "Print all settings with their values and origins: environment, file or default."
    # It must also work with invalid settings.
    requires_system_checks = ()

    def handle(self, *_: Any, **__: Any) -> None:
        found = readings()
        names = max(len(reading.name) for reading in found)
        for reading in found:
            self.stdout.write(f"{reading.name:<{names}}  {reading.origin.value:<11}  {reading.value or '-'}")
