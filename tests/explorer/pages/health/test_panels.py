"""Health: each part in a sentence."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from corecube.env import Origin, Reading
from corecube.health import DatabaseFacts
from explorer.pages.health.panels import health_rows, overall, size
from retrieval.encoders.admission import IngestLoad, Memory
from retrieval.engine.admission import Admission
from retrieval.index.following import ReadModelStatus
from retrieval.index.outbox import Lag
from retrieval.models import EmbeddingIndex, Worker
from retrieval.operations.backups import BackupStatus
from retrieval.operations.health import Part, State
from retrieval.operations.installation import Disk, Installation

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
GB = 10**9
PARTS = ("database", "model", "reranker", "bm25", "vectors", "language_model", "redis")


def worker(seconds_ago=2, pid=7):
    now = timezone.now()
    return Worker(host="vm", pid=pid, started_at=now - timedelta(hours=3), seen_at=now - timedelta(seconds=seconds_ago))


def installation(**changes):
    well = Installation(
        parts={name: Part(State.OK) for name in PARTS},
        database=DatabaseFacts("18.4", "0.8.5", 15_400_000, 6, 100),
        pool={"pool_size": 2, "pool_max": 24},
        model="bge-small",
        reranker="",
        index=EmbeddingIndex(pk=1, model="bge-small", dim=384),
        stuck=(),
        workers=(worker(),),
        waiting=0,
        disk=Disk(100 * GB, 40 * GB),
        load=Admission().load(),
        ingest=IngestLoad(16, 0, 0, 8, 8, Memory(GB, 8 * GB)),
        backups=BackupStatus(is_scheduled=False, last_good=None, latest=None, now=timezone.now()),
    )
    return replace(well, **changes)


def rows(**changes):
    return {row.key: row for row in health_rows(installation(**changes), timezone.now())}


def test_an_installation_that_is_well_says_so_part_by_part():
    found = rows()
    absent = {"reranker", "bm25", "vectors", "language_model", "redis", "backup"}
    assert {name: row.status for name, row in found.items()} == {
        name: "not set up" if name in absent else "ok" for name in found
    }
    assert {row.tone for row in rows(reranker="a", language_models="b", has_redis=True).values()} == {"good", "off"}
    assert (
        found["database"].detail
        == "PostgreSQL 18.4 with pgvector 0.8.5, 15.4 MB, 6 of 100 connections, 2 of 24 in this process."
    )
    assert found["bm25"].detail == "Not used on this machine."
    assert found["backup"].detail == "None. Set CORECUBE_BACKUP_TO, or run manage.py backup."
    assert found["workers"].detail == "1 worker: vm:7, started 3 hours ago."
    assert overall(tuple(found.values())).detail == "All components are working."


@pytest.mark.parametrize("key", ["bm25", "vectors"])
def test_a_read_model_tells_its_size_and_how_far_behind_it_is(key):
    status = ReadModelStatus(
        label="", command=key, is_enabled=True, is_readable=True, is_current=True, chunks=1204, bytes=3_400_000
    )
    assert rows(read_models={key: status})[key].detail == "1,204 chunks, 3.4 MB, up to date."
    behind = replace(status, lag=Lag(1, 7.4))
    assert rows(read_models={key: behind})[key].detail == "1,204 chunks, 3.4 MB, 1 transaction or 7 s behind."
    missing = replace(status, is_readable=False, is_due=False)
    assert (missing.problem, rows(read_models={key: missing})[key].detail) == (
        "",
        "None yet. The first sync creates it.",
    )


@pytest.mark.parametrize(
    ("changes", "key", "tone", "words"),
    [
        (
            {"parts": {**installation().parts, "model": Part(State.FAILED, "No such folder.")}},
            "model",
            "bad",
            "No such folder.",
        ),
        (
            {"parts": {**installation().parts, "reranker": Part(State.DEGRADED, "It is left alone.")}},
            "reranker",
            "warn",
            "left alone",
        ),
        ({"workers": ()}, "workers", "bad", "No worker is running"),
        ({"waiting": None}, "queue", "warn", "does not respond"),
        ({"waiting": 400}, "queue", "warn", "400 messages"),
        ({"disk": Disk(100 * GB, 9 * GB)}, "disk", "warn", "9.0 GB free"),
        ({"disk": Disk(100 * GB, 2 * GB)}, "disk", "bad", "2.0 GB free"),
        ({"stuck": (EmbeddingIndex(pk=4, problem="The service is down."),)}, "index", "warn", "index 4 stopped"),
    ],
)
def test_a_part_that_is_not_well_stands_out(changes, key, tone, words):
    found = rows(**changes)
    assert found[key].tone == tone
    assert words in found[key].detail
    assert [row.key for row in found.values() if not row.is_well] == [key]
    assert overall(tuple(found.values())).tone == tone


def test_a_worker_that_fell_silent_is_told_beside_those_that_live():
    assert "1 other stopped responding" in rows(workers=(worker(), worker(600, pid=8)))["workers"].detail
    lost = rows(workers=(worker(600),))["workers"]
    assert (lost.tone, "active 10 minutes ago" in lost.detail) == ("bad", True)


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "0 bytes"), (999, "999 bytes"), (1400, "1.4 KB"), (123_456_789, "123 MB"), (10**16, "10000 TB")],
)
def test_sizes_are_in_the_unit_that_fits(count, words):
    assert size(count) == words


def test_a_setting_from_outside_is_locked():
    given = (Reading("CORECUBE_PORT", "80", Origin.ENVIRONMENT), Reading("CORECUBE_HOST", "::1", Origin.DEFAULT))
    assert [(row.name, row.origin, row.is_locked) for row in given] == [
        ("CORECUBE_PORT", "environment", True),
        ("CORECUBE_HOST", "default", False),
    ]
