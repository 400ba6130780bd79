"""The migration that leaves the folders of commands open, and closes no other's."""

from datetime import timedelta
from importlib import import_module

import pytest
from django.apps import apps
from django.utils import timezone

from corecube import audit
from corecube.models import AuditEvent, Compartment, Connection

mark_commands = import_module("corecube.migrations.0009_connection_command_path").mark_commands


@pytest.fixture
def made(db):
    """Return a function that makes a connection as the earlier release did, with these audit events."""
    compartment = Compartment.objects.create(slug="c", name="C")

    def make(*events, slug="docs", kind="folder", config=None):
        config = {"path": "/opt/docs"} if config is None else config
        row = Connection.objects.create(slug=slug, name=slug, kind=kind, config=config, compartment=compartment)
        for action, details in events:
            audit.record(f"connection.{action}", actor=None, subject=slug, **details)
        mark_commands(apps, None)
        row.refresh_from_db()
        return row.command_path

    return make


def test_a_folder_that_a_command_made_stays_open(made):
    assert made() == "/opt/docs"
    assert made(("sync_queued", {}), ("changed", {"changed": ["trust"]}), slug="other") == "/opt/docs"


@pytest.mark.parametrize(
    "event",
    [
        ("created", {"kind": "folder"}),
        ("changed", {"changed": ["config.path"]}),
        ("changed", {"changed": ["name", "config"]}),
        ("changed", {"changed": ["slug"]}),
    ],
)
def test_one_that_was_made_or_moved_over_the_console_or_the_api_obeys_the_rule(made, event):
    assert made(event) == ""


def test_an_earlier_connection_of_the_same_slug_decides_nothing(made):
    audit.record("connection.created", actor=None, subject="docs", kind="folder")
    AuditEvent.objects.update(at=timezone.now() - timedelta(days=1))
    assert made() == "/opt/docs"


@pytest.mark.parametrize(("kind", "config"), [("git", {"url": "file:///opt/docs"}), ("folder", ["a"]), ("folder", {})])
def test_what_names_no_folder_is_left_alone(made, kind, config):
    assert made(kind=kind, config=config) == ""
