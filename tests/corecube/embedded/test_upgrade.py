"""Moving the data of an earlier major version, with the programs of both."""

import logging
import os

import psycopg
import pytest

from corecube.embedded import install
from corecube.embedded.server import embedded_server, release
from corecube.embedded.upgrade import to_this_major
from corecube.errors import DatabaseUnavailableError
from tests.other_postgres import earlier_server

_ROWS = """CREATE EXTENSION vector;
CREATE TABLE place AS SELECT n, ARRAY[n, 1, 2]::real[]::vector(3) AS at FROM generate_series(1, 500) n;
CREATE INDEX ON place USING hnsw (at vector_l2_ops)"""


@pytest.fixture
def account(tmp_path):
    return install.server_account(tmp_path / "postgres")


def made(folder, major, name="postgres"):
    (folder / name).mkdir()
    (folder / name / "PG_VERSION").write_text(f"{major}\n")
    return folder / name


def test_data_of_a_killed_server_is_moved_and_left_beside(tmp_path, caplog):
    data_dir = tmp_path / "private" / "postgres"
    data_dir.parent.mkdir(mode=0o700)
    with earlier_server() as (url, folder, kill):
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(_ROWS)
        kill()
        folder.rename(data_dir)
    with caplog.at_level(logging.WARNING):
        server = embedded_server(data_dir)
    try:
        with server.connect("postgres") as connection:
            assert connection.info.server_version // 10_000 == install.MAJOR
            nearest = connection.execute("SELECT n FROM place ORDER BY at <-> '[7,1,2]' LIMIT 1").fetchone()
            assert nearest == (7,)
    finally:
        release(data_dir)
    assert [it.getMessage() for it in caplog.records] == ["database.upgrading from=16 to=18", "database.upgraded to=18"]
    assert install.major_of(data_dir.with_name("postgres-16")) == "16"
    assert not list(data_dir.parent.glob("postgres.up*"))


@pytest.mark.parametrize("is_renamed", [False, True])
def test_a_move_that_was_killed_at_its_end_is_finished(tmp_path, account, is_renamed):
    made(tmp_path, 16, "postgres-16" if is_renamed else "postgres")
    made(tmp_path, install.MAJOR, "postgres.upgraded")
    to_this_major(tmp_path / "postgres", account)
    majors = {it.name: install.major_of(it) for it in tmp_path.iterdir()}
    assert majors == {"postgres": str(install.MAJOR), "postgres-16": "16"}


def test_earlier_data_that_is_there_already_stays(tmp_path, account):
    for name in ("postgres-16", "postgres"):
        made(tmp_path, 16, name)
    made(tmp_path, install.MAJOR, "postgres.upgraded")
    to_this_major(tmp_path / "postgres", account)
    assert {it.name for it in tmp_path.iterdir()} == {"postgres", "postgres-16", "postgres-16.2"}


def test_without_space_nothing_is_moved(tmp_path, account):
    data_dir = made(tmp_path, 16)
    with (data_dir / "large").open("wb") as file:
        os.truncate(file.fileno(), 2**43)
    with pytest.raises(DatabaseUnavailableError, match=r"needs 8192\.0 GiB of free space"):
        to_this_major(data_dir, account)
    assert [it.name for it in tmp_path.iterdir()] == ["postgres"]


def test_a_failure_is_shown_and_leaves_the_data(tmp_path, account):
    data_dir = made(tmp_path, 16)
    install.allow_traversal(data_dir, account)
    with pytest.raises(DatabaseUnavailableError, match=r"is unchanged\. pg_controldata:\n.*could not open"):
        to_this_major(data_dir, account)
    assert install.major_of(data_dir) == "16"
