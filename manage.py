#!/usr/bin/env python
"""Run one of CoreCube's commands: `manage.py help` lists them."""

import os
import sys

from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line
from django.db import DatabaseError, InterfaceError


def main() -> None:
    """Run the command that the arguments name."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "corecube.settings")
    try:
        execute_from_command_line(sys.argv)
        sys.stdout.flush()
    except BrokenPipeError:
        # What reads the output, such as `head`, has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except ImproperlyConfigured as error:
        sys.exit(str(error))
    except (DatabaseError, InterfaceError) as error:
        # Commands of Django's; our own have said it already.
        from corecube.commands import database_problem  # noqa: PLC0415 -- Django is set up by now

        trouble = database_problem(error)
        if not trouble or "--traceback" in sys.argv:
            raise
        sys.exit(trouble)


if __name__ == "__main__":
    main()
