#!/usr/bin/env python
"""Run one of CoreCube's commands: `manage.py help` lists them."""

import os
import select
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
        if not output_is_unread():
            raise
        # What reads it, such as `head`, has seen enough. Python flushes it once more at its end.
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


def output_is_unread() -> bool:
    """Return whether standard output is a pipe that nothing reads any more, as opposed to another pipe that broke."""
    output = select.poll()
    output.register(sys.stdout, 0)
    return any(event & select.POLLERR for _, event in output.poll(0))


if __name__ == "__main__":
    main()
