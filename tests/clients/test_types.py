"""Types generated from the schemas take requests with the required fields alone."""

import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.clients.conftest import CLIENTS

_SCHEMAS = {"api": "/api", "v1": "/v1", "v2": "/v2", "dify": "/api/dify"}
_PRINTED = (
    "/api Leave and absence\n"
    "/v1 Leave and absence\n"
    "/v1 completed\n"
    "/v2 Annual leave is 27 days.\n"
    "/api/dify Leave and absence\n"
)


@pytest.fixture
def schemas(server, tmp_path):
    """Return the names of the schemas, which are in the test's folder."""
    for name, path in _SCHEMAS.items():
        urllib.request.urlretrieve(f"{server[0]}{path}/openapi.json", tmp_path / f"{name}.json")
    return list(_SCHEMAS)


def program(name, folder):
    """Copy a program of this folder."""
    (folder / name).write_text((Path(__file__).parent / name).read_text())
    return name


def test_typescript(node, schemas, run, tmp_path):
    for name in schemas:
        run("openapi-typescript", f"{name}.json", "--output", f"{name}.ts")
    (tmp_path / "package.json").write_text('{"type": "module"}')
    options = ["--strict", "--noUncheckedIndexedAccess", "--target", "es2022", "--module", "nodenext"]
    run("tsc", *options, program("required_fields.ts", tmp_path))
    assert run("node", "required_fields.js") == _PRINTED


def test_python(schemas, run, tmp_path):
    for name in schemas:
        options = ["--output-model-type", "pydantic_v2.BaseModel", "--use-annotated", "--formatters", "builtin"]
        run("datamodel-codegen", "--input", f"{name}.json", *options, "--output", f"{name}.py")
    file = program("required_fields.py", tmp_path)
    python = str(CLIENTS / "python" / "bin" / "python")
    subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--python-executable", python, file],
        cwd=tmp_path,
        check=True,
    )
    assert run("python", file) == _PRINTED
