"""The audit log in the console."""

import codecs
import csv
import io
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from asgiref.sync import async_to_sync
from django.utils import timezone
from lxml import html

from corecube import audit
from corecube.access import scope_for
from corecube.models import AuditEvent, Grant
from explorer.pages.access import audit as views
from retrieval.models import Document

PAGE = "/access/audit/"


@pytest.fixture
def world(governed):
    """Access needs no documents."""
    return governed


@pytest.fixture
def admin(browse, world):
    audit.record(
        "grant.changed", actor=world.alice, subject="group engineers on finance", before="none", after="internal"
    )
    audit.record("grant.changed", actor=world.bob, subject="user charlie on finance")
    audit.record("key.issued", actor=world.bob, subject="=robot (cc_abc…)", user="bob")
    return browse("alice")


def subjects(response):
    return [row.subject for row, _ in response.context["rows"]]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({}, ["=robot (cc_abc…)", "user charlie on finance", "group engineers on finance"]),
        ({"action": "grant."}, ["user charlie on finance", "group engineers on finance"]),
        ({"actor": "bob", "action": "grant.changed"}, ["user charlie on finance"]),
        ({"subject": "ENGINEERS"}, ["group engineers on finance"]),
        ({"since": "2999-01-01"}, []),
        (
            {"since": "not a day", "before": "x"},
            ["=robot (cc_abc…)", "user charlie on finance", "group engineers on finance"],
        ),
        ({"actor": "nobody\0"}, []),
    ],
)
def test_it_is_filtered(admin, asked, found):
    assert subjects(admin.get(PAGE, asked)) == found


def test_since_is_a_day_in_utc(admin):
    AuditEvent.objects.filter(action="key.issued").update(at=datetime(2020, 5, 4, 23, 59, tzinfo=UTC))
    assert len(subjects(admin.get(PAGE, {"since": "2020-05-04"}))) == 3
    assert len(subjects(admin.get(PAGE, {"since": "2020-05-05"}))) == 2


def test_pages_follow_each_other_without_a_gap(admin, monkeypatch):
    monkeypatch.setattr(views, "_PAGE_SIZE", 2)
    first = admin.get(PAGE)
    older = first.context["older"]
    # What comes in between shifts nothing.
    audit.record("late.event", actor=None)
    second = admin.get(PAGE, {"before": older})
    assert subjects(first) + subjects(second) == [
        "=robot (cc_abc…)",
        "user charlie on finance",
        "group engineers on finance",
    ]
    assert second.context["older"] is None


def lines_of(response):
    async def whole():
        return b"".join([part async for part in response.streaming_content])

    content = async_to_sync(whole)()
    assert content.startswith(codecs.BOM_UTF8)  # By which spreadsheets know UTF-8.
    return list(csv.reader(io.StringIO(content.decode("utf-8-sig"))))


def test_the_export_is_complete_across_batches_and_has_no_formula(admin, monkeypatch):
    monkeypatch.setattr(views, "_BATCH_SIZE", 2)
    answer = admin.get(f"{PAGE}export/", {"action": "grant."})
    assert answer.streaming
    assert answer.headers["Content-Disposition"] == 'attachment; filename="audit.csv"'
    rows = lines_of(answer)
    assert rows[0] == ["at", "actor", "action", "subject", "details"]
    assert [row[1:4] for row in rows[1:]] == [
        ["bob", "grant.changed", "user charlie on finance"],
        ["alice", "grant.changed", "group engineers on finance"],
    ]
    assert rows[2][4] == "before: none; after: internal"
    assert AuditEvent.objects.filter(action="audit.exported").count() == 1
    everything = lines_of(admin.get(f"{PAGE}export/"))
    assert [row[3] for row in everything if row[2] == "key.issued"] == ["'=robot (cc_abc…)"]


def test_it_leads_to_what_was_read(admin):
    assert 'href="/log/"' in admin.get(PAGE).content.decode()


def test_a_document_has_its_title_only_for_who_can_see_it(browse, world):
    connections = (world.runbooks, world.ledger)
    Grant.objects.filter(user=world.alice, compartment=world.ledger.compartment).delete()
    made = [
        Document.objects.create(id=uuid4(), connection=it, title=f"Of {it.slug}", byte_size=1, synced_at=timezone.now())
        for it in connections
    ]
    for document in made:
        audit.record("document.read", actor=world.bob, subject=str(document.pk))
    page = browse("alice").get(PAGE).content.decode()
    assert [scope_for(world.principal("alice")).allows(it.pk) for it in connections] == [True, False]
    assert f'<a href="/documents/{made[0].pk}/">Of runbooks</a>' in page
    assert str(made[1].pk) in page
    assert "Of ledger" not in page


def test_actions_are_chosen_by_their_label(admin):
    options = html.fromstring(admin.get(PAGE, {"action": "grant."}).content).xpath("//select[@name='action']/option")
    labels = {it.get("value"): it.text for it in options}
    assert (labels["key.issued"], labels["grant.changed"]) == ("API key created", "Clearance changed")
    assert [it.get("value") for it in options if "selected" in it.attrib] == ["grant."]
