"""`manage.py sign_ins lift`: reset the limits of failed sign-ins."""

from argparse import ArgumentParser
from typing import Any

from corecube import audit
from corecube.commands import DatabaseCommand
from corecube.sign_in_limits import reset_limits


class Command(DatabaseCommand):
    """Reset the limits of failed sign-ins, so that users can sign in at once."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("action", choices=["lift"])
        parser.add_argument("--name", default="", help="only for this username")
        parser.add_argument("--address", default="", help="only for this address")

    def handle(self, *_: Any, **options: Any) -> None:
        name, address = options["name"], options["address"]
        count = reset_limits(username=name, address=address)
        audit.record("session.limits_lifted", actor=None, subject=name, **({"address": address} if address else {}))
        self.stdout.write(f"Limits reset: {count}.")
