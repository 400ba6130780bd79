"""`manage.py showconfig`, in a process of its own, since the environment is read once."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_setting_is_shown_with_its_origin_and_no_secret(tmp_path):
    (tmp_path / "key").write_text("open-sesame-open-sesame-open-sesame-open-sesame-open")
    given = {"CORECUBE_LEG_THREADS": "3", "SECRET_KEY_FILE": str(tmp_path / "key"), "REDIS_URL": "redis://:hush@host/0"}
    environment = {**os.environ, "CORECUBE_VAR_DIR": str(tmp_path), **given}
    command = [sys.executable, "manage.py", "showconfig"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    rows = {line.split(maxsplit=2)[0]: line.split(maxsplit=2)[1:] for line in done.stdout.splitlines()}
    assert rows["CORECUBE_LEG_THREADS"] == ["environment", "3"]
    assert rows["CORECUBE_QUERY_CACHE"][0] == "default"
    assert rows["SECRET_KEY"] == ["file", "set"]
    assert rows["REDIS_URL"] == ["environment", "set"]
    assert "sesame" not in done.stdout
    assert "hush" not in done.stdout
