"""What an upgrade changes, before it changes anything."""

from datetime import timedelta

import pytest
from django.core.management import call_command
from django.utils import timezone

from corecube.models import Backup
from corecube.pending import pending_changes
from retrieval.models import Document, EmbeddingIndex, Sync
from retrieval.operations.upgrades import upgrade_plan
from tests.installation import Observer, new_installation


def check(capsys):
    call_command("upgrade", "--check")
    return capsys.readouterr().out


def test_with_all_migrations_and_current_documents_there_is_nothing_to_do(world, capsys):
    assert pending_changes() == []
    printed = check(capsys)
    assert "Migrations: none." in printed
    assert "Documents: all have" in printed
    assert "Make one first" in printed


def test_documents_of_earlier_versions_are_counted_with_the_time_that_they_take(world, capsys):
    Document.objects.filter(connection=world.runbooks).update(ingest_version=3)
    Sync.objects.all().delete()
    now = timezone.now()
    Sync.objects.create(
        connection=world.vault, status="done", started_at=now - timedelta(seconds=600), finished_at=now, added=10
    )
    plan = upgrade_plan()
    assert [(it.slug, it.version, it.documents) for it in plan.documents] == [("runbooks", 3, 2)]
    assert plan.document_seconds == pytest.approx(60)
    assert "reads 2 again, about 2 minutes of sync" in check(capsys)


def test_an_index_that_a_new_one_would_improve_is_named(world, capsys):
    EmbeddingIndex.objects.update(pools_windows=False)
    assert "cut long chunks" in check(capsys)
    EmbeddingIndex.objects.update(source="local:another")
    assert "another model" in check(capsys)


def test_the_age_of_the_last_backup_is_told(world, capsys):
    Backup.objects.create(place="/backups", host="here", finished_at=timezone.now())
    assert "Backup: the last good one is 0 hours old." in check(capsys)


def test_the_pending_migrations_of_an_earlier_version_are_listed_and_not_applied():
    with new_installation() as environment:
        observe = Observer(environment)
        observe(
            "from django.core.management import call_command; call_command('migrate', 'retrieval', '0037', verbosity=0)"
        )
        observe(
            "from django.core.management import call_command; call_command('migrate', 'corecube', '0010', verbosity=0)"
        )
        first, again = observe.manage("upgrade", "--check"), observe.manage("upgrade", "--check")
        observe.end()
    assert first == again
    assert "pending, about" in first
    assert "corecube.0011_backup: Create model Backup: changes only the definition" in first
    assert "retrieval.0038_gates_and_sweeps: Add field trigger to evaluationrun: changes only the definition" in first
    assert "Make one first" in first
