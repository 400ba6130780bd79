"""Backups while others write, their schedule, and what admins see of them."""

import threading
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.utils import timezone

from corecube.backup.create import back_up
from corecube.backup.shelf import Shelf
from corecube.connectors.setup import upload_folder
from corecube.errors import BackupError, ConflictError
from corecube.models import Backup, Connection, User
from retrieval.models import Chunk, Document
from retrieval.operations.backups import backup_request, backup_status, is_backup_due
from retrieval.tasks.backups import make_backup


@pytest.fixture
def place(tmp_path, settings):
    settings.CORECUBE_BACKUP_TO = str(tmp_path / "backups")
    return settings.CORECUBE_BACKUP_TO


def in_thread(work):
    """Do something on another connection to the database, and wait for it."""
    errors = []

    def run():
        try:
            work()
        except Exception as error:  # noqa: BLE001 -- raised by the caller's thread
            errors.append(error)
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]


def manifest_of(made):
    return Shelf.at(made.place, "").manifest(made.name)


def rows_of(manifest, model):
    return next(it.rows for it in manifest.tables if it.name == model._meta.db_table)


@pytest.mark.django_db(transaction=True)
def test_a_backup_is_of_one_moment_whatever_is_written_meanwhile(world, place, settings):
    upload_folder(world.vault).mkdir(parents=True)
    (upload_folder(world.vault) / "plan.md").write_text("# Plan")
    before = {model: model.objects.count() for model in (Connection, Document, Chunk, User)}
    steps, deleted = [], f"{world.vault.pk}/plan.md"

    def report(step):
        if not steps:
            in_thread(change)
        steps.append(step)

    def change():
        User.objects.create(username="later")
        Document.objects.filter(connection=world.runbooks).first().chunks.all().delete()
        world.vault.delete()
        (upload_folder(world.runbooks)).mkdir(parents=True)
        (upload_folder(world.runbooks) / "later.md").write_text("# Later")

    manifest = manifest_of(back_up(backup_request(), report=report))
    assert {model: rows_of(manifest, model) for model in before} == before
    assert not (settings.CORECUBE_UPLOADS_DIR / deleted).exists()
    assert [it.path for it in manifest.files] == [deleted]
    assert User.objects.filter(username="later").exists()


@pytest.mark.django_db(transaction=True)
def test_it_names_what_restoring_requires_and_leaves_out_what_is_made_anew(world, place, client):
    client.force_login(world.alice)
    manifest = manifest_of(back_up(backup_request()))
    assert manifest.models == ("hash",)
    tables = {it.name for it in manifest.tables}
    with connection.cursor() as cursor:
        everything = set(connection.introspection.table_names(cursor))
    left_out = {
        "django_session",
        "django_migrations",
        "corecube_backup",
        "corecube_keyuse",
        "retrieval_outboxentry",
        "retrieval_readmodel",
    }
    assert tables == everything - left_out


@pytest.mark.django_db(transaction=True)
def test_only_one_runs(world, place):
    def report(step):
        if step == "check":
            in_thread(second)

    def second():
        with pytest.raises(ConflictError):
            back_up(backup_request())

    assert back_up(backup_request(), report=report).problem == ""
    assert Backup.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_failed_one_is_recorded_and_the_earlier_ones_remain(world, place, client):
    good = back_up(backup_request())
    (part, *_) = manifest_of(good).parts

    def report(step):
        if step == "check":
            Path(place, "parts", part[:2], part).unlink()

    with pytest.raises(BackupError, match="missing"):
        back_up(backup_request(), report=report)
    assert Shelf.at(place, "").names() == [good.name]
    assert "missing" in backup_status().problem
    assert client.get("/readyz").json()["parts"]["backup"] == "degraded"
    assert backup_status().last_good == good
    # The next one writes again what is missing, so that both are whole.
    back_up(backup_request())
    Shelf.at(place, "").parts().check(manifest_of(good).parts)
    assert backup_status().problem == ""


@pytest.mark.django_db(transaction=True)
def test_a_worker_makes_one_when_it_is_due(world, place):
    make_backup()
    make_backup()
    (made,) = Backup.objects.all()
    assert (made.problem, made.size > 0) == ("", True)
    assert not is_backup_due()


@pytest.fixture
def ended(db, place):
    """Return a function that records a backup that began some hours ago."""

    def make(hours, *, problem="", to=place):
        row = Backup.objects.create(place=to, host="here", problem=problem, finished_at=timezone.now())
        Backup.objects.filter(pk=row.pk).update(started_at=timezone.now() - timedelta(hours=hours))

    return make


def test_the_first_one_is_due_at_once(db, place):
    assert is_backup_due()
    assert backup_status().problem == ""


def test_one_rests_for_searches_unless_it_is_to_be_fast(db, place):
    assert backup_request().share < backup_request(is_fast=True).share == 1


def test_without_a_place_none_is_due(db, settings):
    assert not settings.CORECUBE_BACKUP_TO
    assert not is_backup_due()
    with pytest.raises(BackupError, match="CORECUBE_BACKUP_TO"):
        backup_request()


@pytest.mark.parametrize(("hours", "due", "late"), [(1, False, False), (25, True, False), (37, True, True)])
def test_one_is_due_after_its_interval_and_then_overdue(ended, hours, due, late):
    ended(hours)
    assert (is_backup_due(), "overdue" in backup_status().problem) == (due, late)


@pytest.mark.parametrize(("hours", "due"), [(0.5, False), (1.5, True)])
def test_a_failed_one_is_tried_again_after_an_hour(ended, hours, due):
    ended(30)
    ended(hours, problem="The disk is full.")
    assert (is_backup_due(), "The disk is full." in backup_status().problem) == (due, True)


def test_one_elsewhere_does_not_count(ended):
    ended(1, to="/elsewhere")
    assert is_backup_due()
