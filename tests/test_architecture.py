"""The shape of the code: what may import what."""

import ast
import subprocess
import sys
from pathlib import Path

from retrieval.presets.stage_catalog import stage_classes

ROOT = Path(__file__).parent.parent
APPS = ("corecube", "retrieval", "explorer")


def modules(app):
    for path in sorted((ROOT / app).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


PATHS = {name: path for app in APPS for name, path in modules(app)}


def imports(name):
    """Yield every module that a module imports, as written, wherever the import stands."""
    for node in ast.walk(ast.parse(PATHS[name].read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{name} has a relative import"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_packages_import_only_what_stands_below_them():
    command = [Path(sys.executable).with_name("lint-imports"), "--no-logo", "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_only_the_index_package_speaks_sql_to_the_search_tables():
    speakers = {
        name
        for name in PATHS
        if name.startswith(("retrieval", "explorer"))
        and any(it in {"django.db.connection", "django.db.connections"} for it in imports(name))
    }
    allowed = ("retrieval.index.", "retrieval.evaluation.bench", "retrieval.migrations.")
    assert {name for name in speakers if not name.startswith(allowed)} <= {
        "retrieval.ingest.index_tasks",
        "retrieval.ingest.tasks",
        "retrieval.search.runtime",
        "retrieval.ingest.lock",
        "retrieval.ingest.sync",
        "retrieval.ingest.watchdog",
        "retrieval.tasks.worker",
    }


def test_a_stage_lies_in_a_file_of_its_name():
    elsewhere = {
        stage.name: stage.__module__ for stage in stage_classes() if stage.__module__.split(".")[-1] != stage.name
    }
    assert elsewhere == {}
