"""The declared dependencies are those that the code imports, and the locks hold each of them."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
OURS = {"corecube", "retrieval", "explorer"}
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
DECLARED = [Requirement(line) for line in PYPROJECT["project"]["dependencies"]]
EXTRAS = [Requirement(it) for lines in PYPROJECT["project"]["optional-dependencies"].values() for it in lines]
DEVELOPMENT = [Requirement(line) for line in PYPROJECT["dependency-groups"]["dev"]]
#: They come with django, django-ninja, celery, psycopg, django-oauth-toolkit and opentelemetry-sdk, whose interfaces
#: they are part of.
COME_ALONG = {
    *("anyio", "asgiref", "kombu", "mcp-types", "oauthlib", "opentelemetry-api"),
    *("psycopg-pool", "pydantic", "pydantic-core"),
}


def locked(name):
    """Return the version by package of a lock."""
    lines = re.findall(r"^([A-Za-z0-9._-]+)==(\S+)", (ROOT / name).read_text(), re.MULTILINE)
    return {canonicalize_name(package): version for package, version in lines}


def imported():
    """Return the top-level names of all that the code imports."""
    for package in OURS:
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Import):
                    yield from (alias.name.split(".")[0] for alias in node.names)
                elif isinstance(node, ast.ImportFrom):
                    yield node.module.split(".")[0]


def test_every_imported_package_is_declared():
    distributions = packages_distributions()
    names = set(imported()) - sys.stdlib_module_names - OURS
    needed = {canonicalize_name(distributions.get(name, [name])[0]) for name in names}
    assert needed - {canonicalize_name(it.name) for it in DECLARED + EXTRAS} - COME_ALONG == set()


@pytest.mark.parametrize(
    ("lock", "requirements"), [("requirements.lock", DECLARED), ("requirements-dev.lock", DEVELOPMENT)]
)
def test_the_lock_holds_a_fitting_version_of_every_requirement(lock, requirements):
    versions = locked(lock)
    unfit = [
        str(it)
        for it in requirements
        if not it.specifier.contains(versions.get(canonicalize_name(it.name), "0"), prereleases=True)
    ]
    assert unfit == []


def test_the_locks_agree_where_they_overlap():
    runtime, development = locked("requirements.lock"), locked("requirements-dev.lock")
    assert {name for name in runtime.keys() & development.keys() if runtime[name] != development[name]} == set()


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
def test_a_lock_has_a_hash_for_every_package_and_no_addresses(lock):
    text = (ROOT / lock).read_text()
    assert "://" not in text
    assert not re.search(r"^\s*-(?!-hash=sha256:)", text, re.MULTILINE)
    assert len(re.findall(r"^\S+==.*\\\n\s+--hash=sha256:", text, re.MULTILINE)) == len(locked(lock))
