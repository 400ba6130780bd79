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


#: A table after FROM or JOIN, the name that the statement gives it, and the columns of USING.
SOURCE = re.compile(
    r"\b(?:FROM|JOIN)\s+(?:LATERAL\s+)?([\w{}…]+)(?:\s+\[[^]]*\])?"
    r"(?:\s+AS\s+(?!MATERIALIZED)(\w+))?(?:\s+\[[^]]*\])?(?:\s+USING\s+\[([^]]*)\])?"
)
LIMITED = re.compile(r"\{in scope: (?:(\w+)\.)?connection_id\}")
#: Equal ids of documents or connections. The first may have no table's name.
JOINED = re.compile(r"(?<![\w.])(?:(\w+)\.)?(?:document_|connection_)?id = (\w+)\.(?:document_|connection_)?id\b")


def name(path):
    return path.stem


def selects(sql):
    """Return the text of each SELECT, innermost first, without the SELECTs in it; other parentheses are [brackets]."""
    sql, found = re.sub(r"--[^\n]*", "", sql), []
    while inner := re.search(r"\(([^()]*)\)", sql):
        is_query = re.match(r"\s*(?:SELECT|WITH)\b", inner[1])
        found += re.split(r"\bUNION(?: ALL)?\b", inner[1]) if is_query else []
        text = "…" if is_query else f"[{inner[1]}]".replace("[[", "[").replace("]]", "]")
        sql = sql[: inner.start()] + text + sql[inner.end() :]
    return [*found, *re.split(r"\bUNION(?: ALL)?\b", sql)]


def unlimited(sql, limited=()):
    """Return the tables of TABLES that are neither limited to the scope nor joined on the id of a source that is.

    Names that are limited elsewhere in the statement count too: a subquery may use a name from outside it.
    """
    reads = [read(select) for select in selects(sql)]
    everywhere = set(limited).union(*(marked for _, marked, _ in reads))
    lacking = []
    for ours, marked, joins in reads:
        reached = marked | everywhere - ours.keys()
        while more := {name for join in joins if join & reached for name in join} - reached:
            reached |= more
        lacking += [table for alias, table in ours.items() if alias not in reached]
    return lacking


def read(select):
    """Return the tables of TABLES by name, the names with the condition, and the names that are joined on their ids."""
    sources = [(alias or table, table, used) for table, alias, used in SOURCE.findall(select)]
    ours = {alias: table for alias, table, _ in sources if table in TABLES}
    only = next(iter(ours)) if len(ours) == 1 else ""
    marked = {alias or only for alias in LIMITED.findall(select)}
    joins = [{one or only, other} for one, other in JOINED.findall(select)]
    used = {alias for alias, _, columns in sources if "document_id" in columns}
    return ours, marked, [*joins, used | {sources[0][0]}] if used else joins


@pytest.mark.parametrize("path", SEARCHES, ids=name)
def test_each_table_of_documents_is_limited_to_the_scope(path):
    vectors = (SQL / "parts" / "complete_vectors.sql").read_text()
    assert unlimited(path.read_text().replace("{vectors}", vectors)) == []


def test_a_table_without_a_condition_is_found():
    joined = "SELECT FROM retrieval_document AS one JOIN retrieval_chunk AS two ON two.document_id = one.id"
    assert unlimited(joined) == ["retrieval_document", "retrieval_chunk"]
    assert unlimited(f"{joined} WHERE {{in scope: one.connection_id}}") == []
    assert unlimited("SELECT FROM retrieval_document, retrieval_chunk WHERE true") == ["retrieval_document"]


@pytest.mark.parametrize("path", [path for path in PARTS if "{document}" in path.read_text()], ids=name)
def test_a_part_limits_its_tables_or_looks_up_a_chunk_in_scope(path):
    assert unlimited(path.read_text().replace("= {document}", "= limited.document_id"), {"limited"}) == []


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
