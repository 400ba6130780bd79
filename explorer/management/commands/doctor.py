"""`manage.py doctor`: what is wrong and how to mend it."""

import json
import logging
import sys
from argparse import ArgumentParser
from typing import Any

from corecube.commands import CoreCubeCommand
from explorer.pages.health.doctor import as_json, as_text, examined


class Command(CoreCubeCommand):
    """Say what is wrong and how to mend it, without secrets, texts, names or addresses; exit with 1 for a problem."""

    # It must also work with invalid settings and without the database.
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *_: Any, **options: Any) -> None:
        # The checks log their reasons, which may contain addresses.
        logging.disable()
        try:
            report = examined()
        finally:
            logging.disable(logging.NOTSET)
        self.stdout.write(json.dumps(as_json(report), indent=2) if options["json"] else as_text(report))
        if report.problems:
            sys.exit(1)
