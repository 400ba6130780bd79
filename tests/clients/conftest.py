"""A server with the sample company, and the clients of `make test-clients`, which run against it."""

import os
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.installation import Observer, new_installation
from tests.started import start_installation, until_ready

ROOT: Final = Path(__file__).parent.parent.parent
CLIENTS: Final = ROOT / "build" / "clients"
_KEY: Final = (
    "from corecube.models import ApiKey, User\n"
    "from corecube.people import ensure_first_admin\n"
    "ensure_first_admin()\n"
    "print(ApiKey.issue(user=User.objects.get(username='admin'), name='clients')[1], end='')"
)
#: Nothing but the server is asked for anything.
_OFFLINE: Final = {
    "HAYSTACK_TELEMETRY_ENABLED": "False",
    "HF_HUB_OFFLINE": "1",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "PROMPTFOO_DISABLE_TELEMETRY": "1",
    "PROMPTFOO_DISABLE_UPDATE": "1",
    "RAGAS_DO_NOT_TRACK": "true",
}


@pytest.fixture(scope="session")
def server():
    """Yield the address of a server with the sample company, and an admin's API key."""
    with new_installation() as environment:
        observe = Observer(environment)
        try:
            observe.manage("samples")
            key = observe(_KEY)
        finally:
            observe.end()
        process = start_installation(folder=Path(environment["CORECUBE_VAR_DIR"]))
        try:
            yield until_ready(process)[1], key
        finally:
            process.terminate()
            process.communicate()


@pytest.fixture
def run(server, tmp_path):
    """Return a function that runs a command in the test's folder, with an environment's programs, for its output."""
    address, key = server

    def run(*command, environment="python"):
        (tmp_path / "node_modules").unlink(missing_ok=True)
        (tmp_path / "node_modules").symlink_to(CLIENTS / "node_modules")
        programs = CLIENTS / environment / "bin", CLIENTS / "node_modules" / ".bin"
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env={
                "PATH": os.pathsep.join([*map(str, programs), os.environ["PATH"]]),
                "HOME": str(tmp_path),
                "CORECUBE_URL": address,
                "CORECUBE_KEY": key,
                **_OFFLINE,
            },
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.fixture
def node():
    """Skip the test where `make test-clients` found no Node.js."""
    if not (CLIENTS / "node_modules").exists():
        pytest.skip("needs Node.js 20 or later")
