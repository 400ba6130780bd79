"""Making, changing and deleting connections in the console."""

import logging

import pytest

from corecube.connectors.setup import upload_folder
from corecube.models import AuditEvent, Compartment, Connection, PushedItem
from corecube.secrets import seal, unseal
from retrieval.ingest import tasks
from retrieval.ingest.sync import sync_connection
from retrieval.models import Chunk, Document, Sync, SyncItem, SyncProblem, TermFrequency

PAGES = [
    "/connections/new/",
    "/connections/new/git/",
    "/connections/new/access/?compartment=1&sensitivity=1",
    "/connections/runbooks/edit/",
    "/connections/runbooks/access/?compartment=1&sensitivity=1",
    "/connections/runbooks/delete/",
]
TOKEN = "zanzibar-4711"


@pytest.fixture(autouse=True)
def queued(monkeypatch):
    """Collect what would go to a worker."""
    sent = []
    monkeypatch.setattr(tasks.work, "apply_async", lambda **options: sent.append(options))
    return sent


@pytest.fixture
def alice(browse):
    return browse("alice")


def settings_of(connection, **changes):
    """Return a form as a browser would send it with nothing changed, and these changes."""
    values = {
        "name": connection.name,
        "slug": connection.slug,
        "compartment": connection.compartment_id,
        "sensitivity": connection.sensitivity,
        "trust": connection.trust,
        "half_life_days": connection.half_life_days,
        "freshness_basis": connection.freshness_basis,
        "chunk_profile": connection.chunk_profile,
        **{f"config_{name}": value for name, value in connection.config.items()},
    }
    return {**values, **changes}


def new(world, **changes):
    blank = Connection(name="Wiki", compartment=world.runbooks.compartment)
    return settings_of(blank, **changes)


@pytest.mark.parametrize("path", PAGES)
def test_an_admin_sees_it_and_for_anyone_else_it_does_not_exist(browse, alice, path):
    assert alice.get(path).status_code == 200
    assert browse("bob").get(path).status_code == 404


@pytest.mark.parametrize("path", ["new/folder", "runbooks/edit", "runbooks/delete"])
def test_nobody_else_changes_anything(browse, world, path):
    answer = browse("bob").post(f"/connections/{path}/", new(world, config_path=str(world.root), slug="runbooks"))
    assert answer.status_code == 404
    assert list(Connection.objects.values_list("name", flat=True)) == ["Ledger", "Runbooks", "Vault"]
    assert not AuditEvent.objects.filter(action__startswith="connection.").exists()


def test_there_is_a_form_for_every_kind_and_for_no_other(alice):
    from corecube.connectors.kinds import KINDS

    listed = alice.get("/connections/new/").content.decode()
    for kind in KINDS:
        assert f"/connections/new/{kind}/" in listed
        assert alice.get(f"/connections/new/{kind}/").status_code == 200
    assert alice.get("/connections/new/carrier-pigeon/").status_code == 404


def test_a_compartment_is_added_with_the_source_and_only_its_admin_can_see_it(alice, world):
    sent = new(world, config_path=str(world.root), compartment="", new_compartment="Wikis", sensitivity=2)
    assert alice.post("/connections/new/folder/", sent).headers["Location"] == "/connections/wiki/first-sync/"
    made = Compartment.objects.get(slug="wikis")
    assert Connection.objects.get(slug="wiki").compartment == made
    assert [(it.user, it.group, it.clearance) for it in made.grants.all()] == [(world.alice, None, 2)]
    assert AuditEvent.objects.filter(action="grant.changed", subject="user alice on wikis").exists()


def test_a_source_that_cannot_be_added_leaves_no_compartment(alice, world):
    sent = new(world, config_path=str(world.root), compartment="", new_compartment="engineering")
    page = alice.post("/connections/new/folder/", sent)
    assert (page.status_code, list(page.context["form"].errors)) == (422, ["new_compartment"])
    taken = {**sent, "new_compartment": "Wikis", "slug": "runbooks"}
    assert alice.post("/connections/new/folder/", taken).status_code == 422
    assert not Compartment.objects.filter(slug="wikis").exists()


def test_a_source_is_tested_before_its_access_is_chosen(alice, world):
    sent = new(world, config_path=str(world.root), do="check", compartment="", sensitivity="")
    page = alice.post("/connections/new/folder/", sent)
    assert (page.status_code, page.context["form"].errors) == (200, {})
    assert "data-tested" in page.content.decode()
    page = alice.post("/connections/new/folder/", {**sent, "config_path": ""})
    assert (page.status_code, list(page.context["form"].errors)) == (422, ["config_path"])


def test_a_folder_is_added_and_synced(alice, world, queued, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        answer = alice.post("/connections/new/folder/", new(world, config_path=str(world.root)))
    assert answer.headers["Location"] == "/connections/wiki/first-sync/"
    assert (Connection.objects.get(slug="wiki").config, len(queued)) == ({"path": str(world.root)}, 1)
    event = AuditEvent.objects.get(action="connection.created")
    assert (event.actor, event.subject, event.details["compartment"]) == (world.alice, "wiki", "engineering")


@pytest.mark.parametrize("kind", ["upload", "push"])
def test_what_is_fed_waits_for_its_documents(alice, world, kind):
    assert alice.post(f"/connections/new/{kind}/", new(world)).headers["Location"] == "/connections/wiki/first-sync/"
    assert not Sync.objects.filter(connection__slug="wiki").exists()


def test_a_check_shows_each_step_and_saves_nothing(alice, world):
    page = alice.post("/connections/new/folder/", new(world, config_path=str(world.root), do="check"))
    assert page.status_code == 200
    assert [state for _, state, _ in page.context["check"]] == ["passed"]
    assert "The source can be read" in page.content.decode()
    assert not Connection.objects.filter(slug="wiki").exists()


def test_a_failed_check_stands_against_saving_until_it_is_ticked(alice, world):
    sent = new(world, config_path="/srv/no/such/folder", name="Typed name")
    page = alice.post("/connections/new/folder/", sent)
    text = page.content.decode()
    assert page.status_code == 422
    assert "/srv/no/such/folder does not exist." in text
    assert 'name="anyway"' in text
    assert 'value="Typed name"' in text
    assert not Connection.objects.filter(slug="typed-name").exists()
    assert alice.post("/connections/new/folder/", {**sent, "anyway": "yes"}).status_code == 302
    # What cannot be read is not synced, either.
    assert not Sync.objects.filter(connection__slug="typed-name").exists()


def test_a_config_that_is_wrong_is_not_saved_whatever_is_ticked(alice, world):
    page = alice.post("/connections/new/web/", new(world, config_start="ftp://x", anyway="yes"))
    assert page.status_code == 422
    assert "config_start" in page.context["form"].errors
    assert not Connection.objects.filter(slug="wiki").exists()


def test_a_check_swaps_only_the_form(alice, world, htmx):
    sent = new(world, config_path=str(world.root), do="check")
    fragment = alice.post("/connections/new/folder/", sent, headers=htmx).content.decode()
    assert "<html" not in fragment
    assert 'id="connection-form"' in fragment


def test_secrets_are_sealed_and_stand_in_no_page_log_or_audit_event(alice, world, caplog):
    caplog.set_level(logging.DEBUG)
    url = "http://127.0.0.1:1/r.git"
    sent = new(world, config_url=url, config_max_repository_bytes="1", config_timeout_seconds="5", secret_token=TOKEN)
    answers = [alice.post("/connections/new/git/", {**sent, "do": "check"}), alice.post("/connections/new/git/", sent)]
    assert [answer.status_code for answer in answers] == [200, 422]
    answers.append(alice.post("/connections/new/git/", {**sent, "anyway": "yes"}, follow=True))
    stored = Connection.objects.get(slug="wiki")
    assert unseal(stored.sealed_secrets) == {"token": TOKEN}
    answers += [alice.get(f"/connections/wiki/{page}") for page in ("", "edit/", "delete/")]
    assert "13 characters" in answers[-2].content.decode()
    assert all(TOKEN not in answer.content.decode() for answer in answers)
    assert TOKEN not in caplog.text
    assert TOKEN not in str(list(AuditEvent.objects.values()))
    assert TOKEN not in str(list(Connection.objects.values()))


def test_a_change_says_what_changed_and_keeps_secrets(alice, world):
    world.vault.sealed_secrets = seal({})
    world.vault.save()
    answer = alice.post("/connections/vault/edit/", settings_of(world.vault, name="Safe", half_life_days="7"))
    assert answer.headers["Location"] == "/connections/vault/"
    world.vault.refresh_from_db()
    assert (world.vault.name, world.vault.half_life_days) == ("Safe", 7.0)
    assert AuditEvent.objects.get(action="connection.changed").details == {"changed": ["name", "half_life_days"]}


def test_a_secret_is_replaced_and_removed(alice, world):
    config = {"url": world.root.as_uri()}
    Connection.objects.filter(pk=world.vault.pk).update(
        kind="git", config=config, sealed_secrets=seal({"token": TOKEN})
    )
    world.vault.refresh_from_db()
    sent = settings_of(world.vault, config_max_repository_bytes="1", config_timeout_seconds="5", anyway="yes")
    assert alice.post("/connections/vault/edit/", sent).status_code == 302
    for change, secrets in (
        ({}, {"token": TOKEN}),
        ({"secret_token": "new"}, {"token": "new"}),
        ({"drop_token": "on"}, {}),
    ):
        assert alice.post("/connections/vault/edit/", {**sent, **change}).status_code == 302
        assert unseal(Connection.objects.get(pk=world.vault.pk).sealed_secrets) == secrets
    assert AuditEvent.objects.filter(details__changed__contains=["secrets.token"]).count() == 2


def test_a_change_of_who_sees_it_names_them_and_needs_a_tick(alice, world):
    public = settings_of(world.vault, sensitivity=0)
    page = alice.post("/connections/vault/edit/", public)
    assert page.status_code == 422
    assert (page.context["gaining"]["names"], page.context["gaining"]["groups"]) == ("bob", "group engineers")
    assert page.context["losing"]["names"] == ""
    assert alice.post("/connections/vault/edit/", {**public, "access_confirmed": "yes"}).status_code == 302
    event = AuditEvent.objects.get(action="connection.changed")
    assert event.details["before"] == {"sensitivity": "restricted"}
    assert event.details["after"] == {"sensitivity": "public"}


def test_who_would_see_it_is_told_before_anything_is_sent(alice, world):
    finance = Compartment.objects.get(slug="finance")
    text = alice.get(f"/connections/runbooks/access/?compartment={finance.pk}&sensitivity=1").content.decode()
    assert "Loses access" in text
    assert "bob" in text
    assert "Gains access" not in text
    fresh = alice.get(f"/connections/new/access/?compartment={finance.pk}&sensitivity=1").content.decode()
    assert "alice" in fresh
    assert "bob" not in fresh


@pytest.mark.parametrize("query", ["", "compartment=x&sensitivity=1", "compartment=1&sensitivity=99999999999999999999"])
def test_junk_is_told_nothing(alice, query):
    answer = alice.get(f"/connections/new/access/?{query}")
    assert (answer.status_code, "may see" in answer.content.decode()) == (200, False)


def test_a_connection_is_disabled_and_enabled(alice, world):
    for wanted, verb in (("no", "disabled"), ("no", "disabled"), ("yes", "enabled")):
        alice.post("/connections/runbooks/switch/", {"enabled": wanted})
        assert Connection.objects.get(slug="runbooks").enabled == (wanted == "yes")
        assert AuditEvent.objects.filter(action=f"connection.{verb}").count() == 1


def test_a_schedule_starts_after_its_interval(alice, world):
    alice.post("/connections/runbooks/edit/", settings_of(world.runbooks, sync_every_minutes="60"))
    assert Connection.objects.get(slug="runbooks").next_sync_at is not None
    alice.post("/connections/runbooks/edit/", settings_of(world.runbooks, sync_every_minutes=""))
    assert Connection.objects.get(slug="runbooks").next_sync_at is None


def test_a_source_that_is_read_already_is_named_and_may_be_added(alice, world):
    again = new(world, config_path=f"{world.runbooks.config['path']}/")
    page = alice.post("/connections/new/folder/", {**again, "do": "check"}).content.decode()
    assert "Already read by Runbooks." in page
    assert "2 files found." in page
    other = new(world, config_path=str(world.root))
    assert "Already read" not in alice.post("/connections/new/folder/", {**other, "do": "check"}).content.decode()
    assert alice.post("/connections/new/folder/", again).headers["Location"] == "/connections/wiki/first-sync/"


def test_before_a_compartment_is_selected_nothing_is_said_of_access(alice):
    page = alice.get("/connections/new/access/?compartment=&sensitivity=1").content.decode()
    assert "Select a compartment" in page
    assert "nobody" not in page


def test_documents_that_are_sent_need_no_schedule_and_no_test(alice, world):
    form = alice.get("/connections/new/upload/")
    assert "sync_every_minutes" not in form.context["form"].fields
    assert [step["name"] for step in form.context["wizard"]] == ["kind", "source", "sync"]
    assert 'id="do-check"' not in form.content.decode()
    alice.post("/connections/new/upload/", new(world))
    assert "data-upload" in alice.get("/connections/wiki/first-sync/").content.decode()


def test_the_allowed_folders_are_listed_beside_a_path(alice, settings):
    settings.CORECUBE_FOLDER_ROOTS = ["/srv", "/data"]
    assert "below one of these folders: /srv, /data." in alice.get("/connections/new/folder/").content.decode()


def test_deleting_asks_for_the_name_and_says_what_goes(alice, world):
    page = alice.get("/connections/runbooks/delete/")
    assert (page.context["documents"], page.context["chunks"]) == (2, 2)
    wrong = alice.post("/connections/runbooks/delete/", {"name": "Runbook"})
    assert wrong.status_code == 422
    assert "Type Runbooks to confirm." in wrong.content.decode()
    assert Connection.objects.filter(slug="runbooks").exists()


def test_deleting_removes_everything_in_it_and_nothing_else(alice, world, django_capture_on_commit_callbacks):
    dropbox = Connection.objects.create(
        slug="dropbox", name="Dropbox", kind="upload", compartment=world.runbooks.compartment
    )
    upload_folder(dropbox).mkdir(parents=True)
    (upload_folder(dropbox) / "a.md").write_text("# A\n\nRoll back.\n")
    (upload_folder(dropbox) / "empty.md").write_text("")
    sync_connection(dropbox)
    PushedItem.objects.create(connection=dropbox, external_id="x", name="x", content=b"x", version="1")
    others = Document.objects.exclude(connection=dropbox).count()
    with django_capture_on_commit_callbacks(execute=True):
        assert alice.post("/connections/dropbox/delete/", {"name": " Dropbox"}).headers["Location"] == "/connections/"
    gone = dropbox.pk
    for model in (Document, Chunk, TermFrequency, Sync, SyncProblem, PushedItem):
        assert not model.objects.filter(connection_id=gone).exists(), model
    assert not SyncItem.objects.exists()
    assert not upload_folder(dropbox).exists()
    assert Document.objects.count() == others
    event = AuditEvent.objects.get(action="connection.deleted")
    assert (event.subject, event.details["documents"], event.details["chunks"]) == ("dropbox", 1, 1)


def test_an_address_from_before_leads_on(browse):
    answer = browse("bob").get("/sources/runbooks/quality/?minimum=0.5")
    assert (answer.status_code, answer.headers["Location"]) == (301, "/connections/runbooks/quality/?minimum=0.5")


def test_a_path_that_may_not_be_read_is_refused_at_its_field(alice, world, settings):
    settings.CORECUBE_FOLDER_ROOTS = [world.root / "runbooks"]
    for sent in ({}, {"do": "check"}, {"anyway": "yes"}):
        for path in (world.root / "vault", world.root / "missing"):
            page = alice.post("/connections/new/folder/", new(world, config_path=str(path), **sent))
            assert "CORECUBE_FOLDER_ROOTS" in str(page.context["form"].errors["config_path"])
    assert not Connection.objects.filter(slug="wiki").exists()
    moved = settings_of(world.runbooks, config_path=str(world.root / "vault"), anyway="yes")
    page = alice.post("/connections/runbooks/edit/", moved)
    assert "CORECUBE_FOLDER_ROOTS" in str(page.context["form"].errors["config_path"])
