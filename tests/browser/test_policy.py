"""No page in any state asks for what the policy refuses: no inline style, no inline script."""

import re

import pytest
from django.contrib import admin
from django.utils import timezone
from playwright.sync_api import expect

from retrieval.ingest.sync import sync_connection
from retrieval.models import Sync, SyncItem
from retrieval.models.document import document_id
from tests.profiles import turn

DOCS = ("/api/docs", "/v1/docs", "/api/dify/docs")
CHARTS = ("/explorer/?q=rollback&tab=trace", "/explorer/?q=rollback&tab=scores")


@pytest.fixture
def jobs(world):
    """Return jobs in every state that a page shows: running, done with problems, stopped, waiting, a dry run."""
    (world.root / "runbooks" / "broken.pdf").write_bytes(b"no document")
    dry = sync_connection(world.runbooks, sync=Sync(connection=world.runbooks, kind=Sync.Kind.DRY_RUN))
    done = sync_connection(world.runbooks)
    now = timezone.now()
    running = Sync.objects.create(
        connection=world.vault,
        status="running",
        stage="working",
        seen=3,
        added=1,
        started_at=now,
        listed_at=now,
        heartbeat_at=now,
    )
    for number, stage in enumerate(("embedding", "parsing")):
        SyncItem.objects.create(
            sync=running,
            document_id=document_id(world.vault.pk, stage),
            external_id=stage,
            state="running",
            stage=stage,
            chunks=9 * (1 - number),
            embedded=4 * (1 - number),
        )
    stopped = Sync.objects.create(connection=world.ledger, status="stopped", message="2 of 2 documents are gone.")
    Sync.objects.create(connection=world.ledger)
    return dry, done, running, stopped


@pytest.mark.parametrize("scheme", turn(["dark", "light"], 0, of=2))
def test_jobs_in_every_state_ask_for_nothing_that_is_refused(start, jobs, scheme):
    alice = start(user="alice", color_scheme=scheme)
    for job in jobs:
        alice.open(f"/jobs/{job.pk}/")
        expect(alice.page.locator("#job")).to_be_visible()
        alice.open(f"/connections/{job.connection.slug}/")
    alice.open(f"/jobs/{jobs[2].pk}/")
    expect(alice.page.locator(".stages")).to_contain_text("embedding (4 of 9 chunks)")
    # The page asks again while a job is open, and what comes takes the place of what was there.
    with alice.page.expect_response(lambda answer: f"/jobs/{jobs[2].pk}/" in answer.url):
        pass
    for path in ("/jobs/", "/connections/", "/overview/"):
        alice.open(path)


def test_a_field_that_was_made_larger_is_swapped_without_its_style(alice):
    page = alice.page
    alice.watch.expect(422)
    alice.open("/connections/runbooks/edit/")
    page.get_by_text("Advanced", exact=True).first.click()
    field = page.locator("#connection-form textarea").first
    box = field.bounding_box()
    corner = box["x"] + box["width"] - 4, box["y"] + box["height"] - 4
    page.mouse.move(*corner)
    page.mouse.down()
    page.mouse.move(corner[0], corner[1] + 60)
    page.mouse.up()
    expect(field).to_have_attribute("style", re.compile("height"))
    with page.expect_response(lambda answer: answer.request.method == "POST"):
        page.get_by_role("button", name="Test connection").first.click()
    expect(field).not_to_have_attribute("style", re.compile("height"))


@pytest.mark.parametrize("path", DOCS)
def test_the_description_of_an_api_is_used_under_the_policy(alice, path):
    page = alice.page
    alice.open(path)
    operation = page.locator(".opblock-summary-control").first
    operation.click(timeout=60_000)  # Drawing hundreds of operations takes seconds.
    expect(page.locator(".opblock.is-open").first).to_be_visible()
    expect(page.get_by_role("button", name="Execute").first).to_be_visible()


def test_the_description_of_an_api_follows_the_theme(alice):
    dark = re.compile("dark-mode")
    alice.open(DOCS[0])
    expect(alice.page.locator("html")).not_to_have_class(dark)
    alice.page.emulate_media(color_scheme="dark")
    expect(alice.page.locator("html")).to_have_class(dark)
    alice.page.evaluate("localStorage.setItem('corecube-theme', 'light')")
    alice.page.reload()
    expect(alice.page.locator("html")).not_to_have_class(dark)


def test_the_administration_is_used_under_the_policy(alice, world):
    seen = 0
    for model, its in admin.site._registry.items():
        base = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
        row = model.objects.first()
        for path in (
            base,
            f"{base}add/" if model is type(world.alice) else "",
            f"{base}{row.pk}/change/" if row else "",
        ):
            if path:
                alice.open(path)
                expect(alice.page.locator("#content").first).to_be_visible()
                seen += 1
        assert its
    assert seen > 5


@pytest.mark.parametrize("path", CHARTS)
def test_a_chart_that_is_pointed_at_shows_its_numbers_under_the_policy(alice, path):
    page = alice.page
    alice.open(path)
    chart = page.locator("[data-chart]:visible").first
    chart.scroll_into_view_if_needed()
    expect(chart.locator("svg.main-svg").first).to_be_visible()
    box = chart.bounding_box()
    for across in (0.3, 0.5, 0.7):
        for down in (0.3, 0.5, 0.7):
            page.mouse.move(box["x"] + box["width"] * across, box["y"] + box["height"] * down)
    alice.resize(390)
    alice.resize(1440)


def test_errors_and_what_is_outside_the_console_keep_to_the_policy(start, world):
    browser = start()
    browser.watch.expect(404)
    for path in ("/login/", "/no-such-page/", "/password/set/x/y/", "/logout/done/", "/api/v1/nothing"):
        browser.open(path)
