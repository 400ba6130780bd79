import re

import pytest

from corecube.models import ApiKey, AuditEvent, Compartment, Connection, Grant
from corecube.models.access import key_digest


@pytest.fixture
def admin(client, people):
    client.force_login(people["alice"])
    return client


@pytest.mark.parametrize("model", ["user", "compartment", "grant", "connection", "apikey", "auditevent"])
def test_every_governance_table_has_its_pages(admin, model):
    assert admin.get(f"/admin/corecube/{model}/").status_code == 200
    added = admin.get(f"/admin/corecube/{model}/add/").status_code
    assert added == (403 if model == "auditevent" else 200)


def test_others_are_sent_to_sign_in(client, people):
    client.force_login(people["bob"])
    assert client.get("/admin/corecube/grant/").headers["Location"].startswith("/admin/login/")


def test_a_new_keys_secret_is_shown_once_and_stored_nowhere(admin, people):
    fields = {"user": people["bob"].pk, "name": "robot", "presets": "[]", "max_sensitivity": ""}
    shown = admin.post("/admin/corecube/apikey/add/", fields, follow=True).content.decode()
    secret = re.search(r"cc_[\w-]{43}", shown).group()
    key = ApiKey.objects.get()
    assert key.digest == key_digest(secret)
    assert secret not in admin.get(f"/admin/corecube/apikey/{key.pk}/change/").content.decode()


def connection(compartment, **changed):
    fields = {
        "slug": "wiki",
        "name": "Wiki",
        "kind": "folder",
        "config": "{}",
        "compartment": compartment.pk,
        "sensitivity": 1,
        "trust": 2,
        "source_type": "",
        "half_life_days": 180,
        "freshness_basis": "synced",
        "chunk_profile": "default",
        "enabled": "on",
    }
    return {**fields, **changed}


def test_a_connection_that_could_not_be_read_is_refused(admin, tmp_path):
    compartment = Compartment.objects.create(slug="c", name="C")
    for config, kind, reason in (
        ("{}", "folder", "A folder connection needs a path."),
        ('{"path": "/no/such"}', "folder", "There is nothing at /no/such."),
        ("{}", "teleport", "There is no connector of that kind"),
    ):
        page = admin.post("/admin/corecube/connection/add/", connection(compartment, config=config, kind=kind))
        assert reason in page.content.decode()
    assert not Connection.objects.exists()
    good = connection(compartment, config=f'{{"path": "{tmp_path}"}}')
    assert admin.post("/admin/corecube/connection/add/", good).status_code == 302
    assert Connection.objects.get().config == {"path": str(tmp_path)}


def test_deleting_a_connection_in_the_administration_deletes_its_documents(client, world):
    client.force_login(world.alice)
    assert world.vault.documents.exists()
    client.post(f"/admin/corecube/connection/{world.vault.pk}/delete/", {"post": "yes"})
    assert not Connection.objects.filter(slug="vault").exists()
    assert not world.vault.documents.exists()


def test_a_grant_of_nobody_is_refused(admin):
    compartment = Compartment.objects.create(slug="c", name="C")
    page = admin.post("/admin/corecube/grant/add/", {"compartment": compartment.pk, "clearance": 1})
    assert "A grant names either a user or a group." in page.content.decode()
    assert not Grant.objects.exists()


@pytest.mark.parametrize("config", ['["a"]', '"x"', "[]", '""', "0", "false"])
@pytest.mark.parametrize("kind", ["folder", "upload"])
def test_a_config_that_is_no_json_object_is_an_error_of_the_form(admin, config, kind):
    compartment = Compartment.objects.create(slug="c", name="C")
    page = admin.post("/admin/corecube/connection/add/", connection(compartment, config=config, kind=kind))
    assert "The config must be a JSON object" in page.content.decode()
    assert not Connection.objects.exists()


@pytest.mark.parametrize("config", ["", "null"])
def test_no_config_is_an_empty_one(admin, config):
    compartment = Compartment.objects.create(slug="c", name="C")
    admin.post("/admin/corecube/connection/add/", connection(compartment, config=config, kind="upload"))
    assert Connection.objects.get().config == {}


def test_issuing_and_revoking_a_key_are_logged(admin, people):
    fields = {"user": people["bob"].pk, "name": "robot", "presets": "[]", "max_sensitivity": ""}
    admin.post("/admin/corecube/apikey/add/", fields)
    key = ApiKey.objects.get()
    change = f"/admin/corecube/apikey/{key.pk}/change/"
    admin.post(change, {**fields, "name": "android"})
    revoked = {**fields, "name": "android", "revoked_at_0": "2026-01-02", "revoked_at_1": "03:04:05"}
    for _ in range(2):
        assert admin.post(change, revoked).status_code == 302
    logged = AuditEvent.objects.order_by("id").values_list("action", "actor__username", "subject", "details")
    assert list(logged) == [
        ("key.issued", "alice", str(key), {"user": "bob"}),
        ("key.revoked", "alice", f"android ({key.prefix}…)", {"user": "bob"}),
    ]
