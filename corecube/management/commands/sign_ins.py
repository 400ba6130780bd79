"""`manage.py sign_ins lift`: let somebody sign in at once who has to wait after too many failed sign-ins."""

from argparse import ArgumentParser
from typing import Any

from corecube import audit
from corecube.commands import DatabaseCommand
from corecube.sign_in_limits import lift


class Command(DatabaseCommand):
    """Forget failed sign-ins under a name, from an address, or all of them."""

    help = "Forget failed sign-ins, so that nobody has to wait for the next attempt."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("action", choices=["lift"])
        parser.add_argument("--name", default="", help="only those under this user name")
        parser.add_argument("--address", default="", help="only those from this address")

    def handle(self, *_: Any, **options: Any) -> None:
        name, address = options["name"], options["address"]
        count = lift(username=name, address=address)
        audit.record("session.limits_lifted", actor=None, subject=name, **({"address": address} if address else {}))
        self.stdout.write(f"Limits lifted: {count}.")
