"""Every statement of a search that reads documents, or what was made of them, is limited to a scope."""

import re
from pathlib import Path

import pytest
from django.apps import apps

ROOT = Path(__file__).parents[3]
SQL = ROOT / "retrieval" / "index" / "sql"
SEARCHES = sorted(SQL.glob("*.sql"))
#: What is put into those.
PARTS = sorted((SQL / "parts").glob("*.sql"))
UPKEEP = sorted((SQL / "upkeep").glob("*.sql"))
#: Tables whose rows belong to a connection.
TABLES = {
    model._meta.db_table
    for model in apps.get_app_config("retrieval").get_models()
    if any(field.column == "connection_id" for field in model._meta.concrete_fields)
}
READ = re.compile(r"\b(?:FROM|JOIN)\s+(retrieval_\w+)")


def name(path):
    return path.stem


@pytest.mark.parametrize("path", SEARCHES, ids=name)
def test_what_reads_documents_asks_for_the_scope(path):
    sql = path.read_text()
    if TABLES.intersection(READ.findall(sql)):
        assert "{in scope: " in sql


@pytest.mark.parametrize("path", PARTS, ids=name)
def test_a_part_is_no_statement(path):
    text = "\n".join(line for line in path.read_text().splitlines() if not line.startswith("--"))
    assert not text.startswith(("SELECT", "WITH"))


def test_the_tables_are_known():
    assert {"retrieval_document", "retrieval_chunk", "retrieval_embedding", "retrieval_chunkmentions"} <= TABLES
    assert sum(bool(TABLES.intersection(READ.findall(path.read_text()))) for path in SEARCHES) > 25


def test_nothing_else_writes_the_condition():
    written = re.compile(r"ANY\(%\(scope\)s")
    paths = [path for app in ("corecube", "retrieval", "explorer") for path in (ROOT / app).rglob("*")]
    found = {path.name for path in paths if path.suffix in {".py", ".sql"} and written.search(path.read_text())}
    assert found == {"statements.py"}


@pytest.mark.parametrize("path", UPKEEP, ids=name)
def test_only_upkeep_runs_statements_of_upkeep(path):
    """What searches import does not know them: the modules that do are those of writers, builders and workers."""
    knows = f'statement("upkeep/{path.stem}")'
    users = {
        it for it in (ROOT / "retrieval").rglob("*.py") if knows in it.read_text().replace("prepared(", "statement(")
    }
    assert users
    assert {it.parent.name for it in users} <= {"index", "bench"}
