"""An installation of a test's own: its folder, its environment, and a process of it that does what it is told."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from django.conf import settings

from tests.environment import environment_of, link_downloads, wait_for_end_of_server
from tests.migrated import copy_migrated_server

#: Lets somebody who looks now and then see a store half full: every document takes a while, and no processor time.
STORE_SLOWLY: Final = """
CREATE OR REPLACE FUNCTION store_slowly() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN PERFORM pg_sleep(0.05); RETURN NEW; END $$;
CREATE OR REPLACE TRIGGER store_slowly BEFORE INSERT ON retrieval_document FOR EACH ROW EXECUTE FUNCTION store_slowly()
"""


@contextmanager
def new_installation(*, is_migrated: bool = True, **variables: str) -> Iterator[dict[str, str]]:
    """Yield the environment of an installation with our downloads; its database server has ended at the end."""
    with tempfile.TemporaryDirectory(prefix="corecube-test-") as name:
        folder = Path(name)
        link_downloads(folder)
        if is_migrated:
            copy_migrated_server(folder)
        yield environment_of(folder, **variables)
        wait_for_end_of_server(folder)


class Observer:
    """A process of the installation that runs what it is told, so that not every look loads the application anew."""

    _LOOP = (
        "import json, sys\n"
        "from django.db import connection\n"
        "for line in sys.stdin:\n"
        "    exec(json.loads(line), {})\n"
        "    connection.close()\n"
        "    print(end=chr(0), flush=True)\n"
    )

    def __init__(self, environment, code=settings.BASE_DIR):
        self.environment, self._code = environment, code
        self.begin()

    def begin(self):
        self._process = subprocess.Popen(
            [sys.executable, "manage.py", "shell", "--verbosity", "0", "-c", f"exec({self._LOOP!r}, {{}})"],
            cwd=self._code,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, script):
        """Return what the script prints."""
        self._process.stdin.write(json.dumps(script) + "\n")
        self._process.stdin.flush()
        printed = []
        while (sign := self._process.stdout.read(1)) != "\0":
            assert sign, "the observer ended"
            printed.append(sign)
        return "".join(printed)

    def manage(self, *arguments):
        """Run a command and return what it prints."""
        return self(f"from django.core.management import call_command; call_command(*{arguments!r})")

    def end(self):
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
