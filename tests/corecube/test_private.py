"""What an installation writes is for its own account."""

import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from django.conf import settings

from corecube.process import make_all_private, make_private
from tests.profiles import turn

AS_ROOT = os.geteuid() == 0
NOBODY = 65534
#: Makes what processes make: the database with its log and locks, a queued message, an upload, a connector's state,
#: the read models.
_USE = """
import io, django
django.setup()
from django.core.management import call_command
from corecube.connectors.setup import state_folder
from corecube.connectors.upload import save_upload
from corecube.models import Compartment, Connection
from retrieval.index.read_models import keep_up
from retrieval.ingest.tasks import wake_workers
call_command("migrate", verbosity=0)
compartment = Compartment.objects.create(slug="c", name="C")
connection = Connection.objects.create(slug="x", name="X", kind="upload", compartment=compartment)
save_upload(connection, name="a.md", content=io.BytesIO(b"text"))
wake_workers()
state_folder(connection).mkdir(parents=True)
keep_up()
"""


def open_to_others(folder):
    """Return what other accounts may use in any way, the folder itself included."""
    found = [folder, *(Path(place, name) for place, folders, files in os.walk(folder) for name in (*folders, *files))]
    return [str(it) for it in found if _is_open(it)]


def _is_open(path):
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:  # a running database deletes its temporary files
        return False
    return not stat.S_ISLNK(mode) and bool(stat.S_IMODE(mode) & 0o077)


@pytest.fixture
def var():
    with tempfile.TemporaryDirectory(prefix="corecube-test-") as name:
        folder = Path(name) / "var"
        folder.mkdir()
        yield folder


@pytest.mark.parametrize("account", turn(["other", "own"] if AS_ROOT else ["own"], 0, of=2))
def test_nothing_that_a_process_makes_is_open_to_others(var, account):
    """As root the database runs as an account of its own, which may not look into the folder either."""
    command = [sys.executable, "-c", _USE]
    environment = {
        **{name: value for name, value in os.environ.items() if name not in {"DATABASE_URL", "REDIS_URL", "HOME"}},
        "CORECUBE_VAR_DIR": str(var),
        "DJANGO_SETTINGS_MODULE": "corecube.settings",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    if account == "other":
        for folder in (var.parent, var):
            os.chown(folder, NOBODY, NOBODY)
        command = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *command]
    # A lax mask and an open folder, as accounts often have them.
    var.chmod(0o777)
    command = ["sh", "-c", 'umask 000 && exec "$@"', "sh", *command]
    subprocess.run(command, check=True, cwd=settings.BASE_DIR, env=environment)
    made = {path.name for path in var.iterdir()}
    assert {"postgres", "secret_key", "queue", "log", "uploads", "sources", "bm25", "vectors"} <= made
    assert stat.S_IMODE(var.stat().st_mode) == 0o700
    assert open_to_others(var) == []


def test_what_an_earlier_release_left_open_is_closed(tmp_path):
    (tmp_path / "uploads" / "1").mkdir(parents=True, mode=0o755)
    (tmp_path / "uploads" / "1" / "a.md").touch(mode=0o644)
    (tmp_path / "tool").touch(mode=0o755)
    elsewhere = tmp_path.parent / "elsewhere.md"
    elsewhere.touch()
    elsewhere.chmod(0o644)
    (tmp_path / "link.md").symlink_to(elsewhere)
    assert list(make_all_private(tmp_path)) == []
    assert make_private(tmp_path)
    assert open_to_others(tmp_path) == []
    assert stat.S_IMODE((tmp_path / "tool").stat().st_mode) == 0o700
    assert stat.S_IMODE(elsewhere.stat().st_mode) == 0o644
    elsewhere.unlink()


@pytest.mark.skipif(not AS_ROOT, reason="needs another account")
def test_what_belongs_to_another_account_is_told():
    script = "import sys; from pathlib import Path; from corecube.process import make_private;"
    script += " print(make_private(Path(sys.argv[1])))"
    command = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", sys.executable, "-c", script]
    with tempfile.TemporaryDirectory(prefix="corecube-test-") as name:
        Path(name).chmod(0o755)
        (Path(name) / "open.md").touch()
        (Path(name) / "open.md").chmod(0o644)
        done = subprocess.run([*command, f"{name}/open.md"], check=True, cwd=settings.BASE_DIR, stdout=subprocess.PIPE)
    assert done.stdout.split() == [b"False"]
