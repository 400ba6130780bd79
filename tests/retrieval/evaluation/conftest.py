import pytest
from psycopg import sql

from retrieval.evaluation.bench import scratch
from tests.migrated import migrated_database


@pytest.fixture
def migrated_scratch(transactional_db, monkeypatch):
    """Let a benchmark begin with a copy of a migrated database; nightly, `test_bench` has one migrate an empty one."""
    copy_migrated(monkeypatch)


def copy_migrated(monkeypatch):
    """Let a benchmark begin with a copy of a migrated database."""
    copied = sql.SQL("CREATE DATABASE {{}} TEMPLATE {}").format(sql.Identifier(migrated_database()))
    monkeypatch.setattr(scratch, "_CREATE", sql.SQL(copied.as_string()))
