"""`manage.py doctor`, whose page can be sent to anybody."""

import json
import os
import subprocess
import sys
from datetime import timedelta

import pytest
from django.conf import settings
from django.core.management import call_command
from django.utils import timezone

from corecube import env
from corecube.env import Origin, Reading
from explorer.pages.health import doctor
from retrieval.models import EmbeddingIndex, LanguageModel, Sync, SyncProblem, Worker
from tests.installation import new_installation

PLANTED = "zanzibar"


def run(environment, *arguments):
    command = [sys.executable, "manage.py", "doctor", *arguments]
    return subprocess.run(command, cwd=settings.BASE_DIR, env=environment, capture_output=True, text=True, check=False)


def parts(report):
    return {row.key: row for row in report.rows}


def test_what_is_wrong_comes_first_with_what_to_do(world):
    report = doctor.examined()
    assert parts(report)["workers"].tone == "bad"
    head, first, advice, *_ = doctor.as_text(report).splitlines()
    assert "1 problem" in head
    assert first.startswith("failed   Workers: 0 of 0 alive")
    assert "Start CoreCube or its worker service again" in advice


def test_an_installation_that_is_well_has_no_problem(world):
    Worker.objects.create(host="a", pid=1, started_at=timezone.now(), seen_at=timezone.now())
    report = doctor.examined()
    assert report.problems == []
    assert ": No problem" in doctor.as_text(report)
    assert report.facts["store"] == {"connections": "3", "documents": "4", "chunks": "4"}
    assert parts(report)["syncs"].detail == "The last of each connection: 3 done; 0 documents could not be indexed."


def test_a_failed_sync_and_a_late_clock_are_problems(world, monkeypatch):
    Sync.objects.create(connection=world.runbooks, status=Sync.Status.FAILED)
    monkeypatch.setattr(doctor, "clock_lead_seconds", lambda: -61.2)
    found = parts(doctor.examined())
    assert (found["syncs"].tone, found["clock"].tone) == ("warn", "warn")
    assert "2 done, 1 failed" in found["syncs"].detail
    assert found["clock"].detail == "61 s from the database's."


def plant(world):
    """Write a word wherever a site has words."""
    for it in (world.alice, world.bob):
        it.username, it.email = f"{PLANTED}-{it.pk}", f"{it.pk}@{PLANTED}.example.org"
        it.save()
    for it in (world.runbooks, world.vault):
        it.slug, it.name, it.config = f"{PLANTED}-{it.pk}", PLANTED, {"url": f"https://{PLANTED}.example.org"}
        it.save()
    since = timezone.now() - timedelta(minutes=30)
    Worker.objects.create(host=f"{PLANTED}.local", pid=1, started_at=since, seen_at=since)
    Worker.objects.create(host=f"{PLANTED}.local", pid=2, started_at=since, seen_at=timezone.now())
    Sync.objects.create(connection=world.runbooks, status=Sync.Status.FAILED, message=PLANTED)
    SyncProblem.objects.create(connection=world.runbooks, external_id=PLANTED, reason="empty", message=PLANTED)
    EmbeddingIndex.objects.create(model=PLANTED, dim=8, problem=PLANTED, weights=PLANTED, source=PLANTED)
    LanguageModel.objects.create(
        slug=PLANTED,
        name=PLANTED,
        base_url=f"https://{PLANTED}.example.org/v1",
        model=PLANTED,
        is_enabled=True,
        failing_since=since,
        failure=PLANTED,
    )


@pytest.mark.parametrize("show", [doctor.as_text, lambda report: json.dumps(doctor.as_json(report))])
def test_nothing_of_the_site_is_on_the_page(transactional_db, world, settings, tmp_path, monkeypatch, show):
    plant(world)
    settings.CORECUBE_RERANKER = settings.CORECUBE_SPARSE_MODEL = PLANTED
    settings.CORECUBE_MODELS_DIR = tmp_path / PLANTED
    (settings.CORECUBE_MODELS_DIR / f"{PLANTED}-model").mkdir(parents=True)
    texts = [name for name, it in env._readings.items() if not it.is_plain]
    assert {"SECRET_KEY", "DATABASE_URL", "ALLOWED_HOSTS", "CORECUBE_LLM_URL", "CORECUBE_RERANKER"} <= {*texts}
    for name in texts:
        monkeypatch.setitem(env._readings, name, Reading(name, PLANTED, Origin.ENVIRONMENT))
    report = doctor.examined()
    assert {row.key for row in report.problems} == {"index", "reranker", "language_model", "syncs"}
    assert report.facts["settings"]["CORECUBE_LLM_URL"] == "set"
    assert PLANTED not in show(report)


def test_without_the_database_it_says_so_and_goes_on_without_the_address():
    url = f"postgres://{PLANTED}:{PLANTED}@127.0.0.1:1/{PLANTED}"
    environment = {**os.environ, "DATABASE_URL": url, "REDIS_URL": f"redis://:{PLANTED}@127.0.0.1:1/0"}
    done = run({**environment, "CORECUBE_MAX_FILE_BYTES": "1000", "ALLOWED_HOSTS": PLANTED}, "--json")
    assert done.returncode == 1, done.stderr
    assert PLANTED not in done.stdout + done.stderr
    report = json.loads(done.stdout)
    states = {part["key"]: part["status"] for part in report["parts"]}
    assert (states["database"], states["server"], states["redis"]) == ("failed", "failed", "warning")
    assert states["disk"]
    assert report["facts"]["settings"]["CORECUBE_MAX_FILE_BYTES"] == "1000"
    assert report["facts"]["settings"]["ALLOWED_HOSTS"] == "set"


def test_a_database_without_tables_has_pending_migrations():
    with new_installation(is_migrated=False) as environment:
        done = run(environment)
    assert done.returncode == 1, done.stderr
    assert "failed   Migrations" in done.stdout
    assert "manage.py migrate" in done.stdout


def test_the_command_ends_with_0_where_nothing_is_wrong(world, capsys):
    Worker.objects.create(host="a", pid=1, started_at=timezone.now(), seen_at=timezone.now())
    call_command("doctor")
    assert "No problem" in capsys.readouterr().out
