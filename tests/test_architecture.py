"""The shape of the code: what may import what."""

import ast
import functools
import subprocess
import sys
from pathlib import Path

import pytest

from retrieval.engine.state import DropReason
from retrieval.presets.stage_catalog import stage_classes

ROOT = Path(__file__).parent.parent
APPS = ("corecube", "retrieval", "explorer")


def modules(app):
    for path in sorted((ROOT / app).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


PATHS = {name: path for app in APPS for name, path in modules(app)}


@functools.cache
def parsed(module):
    return ast.parse(PATHS[module].read_text())


def imports(name):
    """Yield every module that a module imports, as written, wherever the import stands."""
    for node in ast.walk(parsed(name)):
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
        "retrieval.ingest.claims",
        "retrieval.ingest.sync",
        "retrieval.ingest.watchdog",
        "retrieval.tasks.worker",
    }


def is_drop_reason(node):
    return isinstance(node, ast.Name) and node.id == "DropReason"


def declares_stage(node):
    """Whether a class has the declaration that makes it a stage."""
    return any(isinstance(it, ast.AnnAssign) and ast.unparse(it).startswith("about: ClassVar") for it in ast.walk(node))


@functools.cache
def parsed_definitions(module):
    return {it.name: it for it in parsed(module).body if isinstance(it, ast.FunctionDef | ast.ClassDef)}


def given_reasons(module, name, seen):
    """Yield the drop reasons that a class or function gives by itself or by what it calls, other stages left out."""
    tree, defined = parsed(module), parsed_definitions(module)
    if (module, name) in seen or name not in defined or (seen and declares_stage(defined[name])):
        return
    seen.add((module, name))
    imported = {
        alias.name: node.module for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    declarations = {
        id(it)
        for node in ast.walk(defined[name])
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "about"
        for it in ast.walk(node)
    }
    nodes = [it for it in ast.walk(defined[name]) if id(it) not in declarations]
    compared = {id(it) for node in nodes if isinstance(node, ast.Compare) for it in ast.walk(node)}
    for node in nodes:
        if isinstance(node, ast.Attribute) and is_drop_reason(node.value) and id(node) not in compared:
            yield node.attr
        elif isinstance(node, ast.Name):
            source = imported.get(node.id, module)
            if source.startswith(("retrieval.presets.", "retrieval.stages.", "retrieval.ranking.")):
                yield from given_reasons(source, node.id, seen)


@pytest.mark.parametrize("stage", list(stage_classes()), ids=lambda it: f"{it.__module__}.{it.__name__}")
def test_a_stage_declares_every_reason_for_which_it_drops_hits(stage):
    declared = {reason.name for reason in stage.about.drops}
    given = set(given_reasons(stage.__module__, stage.__name__, set()))
    # These run other stages, and hand on what those drop.
    assert given <= declared if stage.name in {"chunk_retry", "recovery"} else given == declared


def test_every_reason_is_one_that_a_stage_declares():
    declared = {reason for stage in stage_classes() for reason in stage.about.drops}
    # MMR dropped hits in earlier releases.
    assert set(DropReason) - declared == {DropReason.REPETITIVE}


def test_a_stage_lies_in_a_file_of_its_name():
    elsewhere = {
        stage.name: stage.__module__ for stage in stage_classes() if stage.__module__.split(".")[-1] != stage.name
    }
    assert elsewhere == {}
