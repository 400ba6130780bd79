"""The worked examples of `docs/extending.md`, applied to a copy of the source and run."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "extending.md").read_text()
#: A block of code, after a line that begins with the file's path; more blocks for the same file may follow.
_BLOCK = re.compile(r"^(?:`([\w./]+)`[^\n]*\n\n)?```(\w+)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)


def blocks():
    """Yield each block as (path, language, text)."""
    path = ""
    for named, language, text in _BLOCK.findall(PAGE):
        path = named or path
        if path:
            yield path, language, text


def changed(source, diff):
    """Return a file's text with the lines of a diff added; what stands around them must be there exactly once."""
    before = "".join(line[1:] for line in diff.splitlines(keepends=True) if not line.startswith("+"))
    after = "".join(line[1:] for line in diff.splitlines(keepends=True))
    assert source.count(before) == 1, f"not once in the file:\n{before}"
    return source.replace(before, after)


@pytest.fixture(scope="module")
def extended(tmp_path_factory):
    """A copy of the source with every example applied, and its own tests alone."""
    root = tmp_path_factory.mktemp("extended")
    tests = shutil.ignore_patterns("test_*.py")
    for name in ("corecube", "retrieval", "explorer", "templates", "static", "tests"):
        shutil.copytree(ROOT / name, root / name, ignore=tests)
    (root / "docs" / "decisions").mkdir(parents=True)
    for name in (
        "manage.py",
        "pyproject.toml",
        *(f"docs/{it}.md" for it in ("configuration", "stages", "scaling", "decisions/README")),
    ):
        shutil.copy(ROOT / name, root / name)
    for path, language, text in blocks():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(changed(file.read_text(), text) if language == "diff" else text)
    (root / "extended_settings.py").write_text(
        "from corecube.settings import *\n\nDATABASES['default']['TEST'] = {'NAME': 'test_extending'}\n"
    )
    return root


def run(root, *command):
    """Return what a command of the copy prints; its tests have a database of their own on the same server."""
    environment = {**os.environ, "CORECUBE_VAR_DIR": str(settings.CORECUBE_VAR_DIR)}
    environment.pop("PYTEST_ADDOPTS", None)
    done = subprocess.run(
        [sys.executable, *command], check=False, cwd=root, env=environment, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    return done.stdout


def test_the_examples_are_complete():
    files = {path for path, language, _ in blocks() if language != "diff"}
    tested = {path for path in files if path.startswith("tests/")}
    assert len(tested) == 4
    assert {path.split("/")[1] for path in files - tested} >= {"connectors", "stages", "pages", "presets"}


def test_the_examples_work(extended):
    tests = [path for path, _, _ in blocks() if Path(path).name.startswith("test_")]
    options = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--ds", "extended_settings", "--create-db")
    printed = run(extended, "-m", "pytest", *options, *tests)
    assert re.search(r"^9 passed", printed, re.MULTILINE), printed


def test_the_examples_pass_the_checks(extended):
    run(extended, "manage.py", "check", "--fail-level", "WARNING")
    run(extended, "-m", "ruff", "check", "--no-cache", *{path for path, *_ in blocks() if path.endswith(".py")})
    run(extended, "-m", "ruff", "format", "--no-cache", "--check", *{it for it, *_ in blocks() if it.endswith(".py")})


def test_the_reference_tables_follow(extended):
    run(extended, "manage.py", "docs")
    assert "| `per_document` | Keeps the best hits of each document. |" in (extended / "docs/stages.md").read_text()
    configuration = (extended / "docs/configuration.md").read_text()
    assert "| `per_document.hits` | 2 hits | 1 to 100 |" in configuration
    assert "### `brief`\n" in configuration
