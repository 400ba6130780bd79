import pytest

from corecube.models import ApiKey, AuditEvent, Compartment, Connection, Grant
from corecube.secrets import seal
from retrieval.answers.conversations.asking import start
from retrieval.answers.conversations.files import attach


@pytest.fixture
def admin(client, people):
    client.force_login(people["alice"])
    return client


@pytest.mark.parametrize("model", ["user", "compartment", "grant", "connection", "apikey", "auditevent"])
def test_every_governance_table_has_its_pages(admin, model):
    assert admin.get(f"/admin/corecube/{model}/").status_code == 200
    added = admin.get(f"/admin/corecube/{model}/add/").status_code
    assert added == (403 if model in {"auditevent", "apikey"} else 200)


def test_others_are_sent_to_sign_in(client, people):
    client.force_login(people["bob"])
    assert client.get("/admin/corecube/grant/").headers["Location"].startswith("/admin/login/")


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
        ('{"path": "/srv/no/such"}', "folder", "/srv/no/such does not exist."),
        ("{}", "teleport", "Unknown kind. Available kinds:"),
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


def test_revoking_a_key_is_logged_once_and_its_user_stays(admin, people):
    key, _ = ApiKey.issue(user=people["bob"], name="robot")
    change = f"/admin/corecube/apikey/{key.pk}/change/"
    fields = {"user": people["alice"].pk, "name": "android", "presets": "[]", "max_sensitivity": ""}
    fields["initial-presets"] = "[]"
    admin.post(change, fields)
    revoked = {**fields, "revoked_at_0": "2026-01-02", "revoked_at_1": "03:04:05"}
    for _ in range(2):
        assert admin.post(change, revoked).status_code == 302
    key.refresh_from_db()
    assert key.user == people["bob"]
    logged = AuditEvent.objects.order_by("id").values_list("action", "actor__username", "subject", "details")
    android = f"android ({key.prefix}…)"
    assert list(logged) == [
        ("key.changed", "alice", android, {"changed": ["name"]}),
        ("key.revoked", "alice", android, {"user": "bob"}),
        ("key.changed", "alice", android, {"changed": ["revoked at"]}),
    ]


def test_secrets_follow_a_connection_to_no_other_host_and_no_other_kind(admin):
    compartment = Compartment.objects.create(slug="c", name="C")
    it = Connection.objects.create(
        slug="wiki", name="Wiki", kind="push", compartment=compartment, sealed_secrets=seal({"token": "zanzibar"})
    )
    path = f"/admin/corecube/connection/{it.pk}/change/"
    kept = connection(compartment, kind="push", config='{"include": ["*.md"]}', name="Docs")
    assert admin.post(path, kept).status_code == 302
    assert AuditEvent.objects.get(action="connection.changed").details["changed"] == ["name", "config"]
    moved = {**kept, "kind": "upload", "config": "{}"}
    assert "has secrets for its current host" in admin.post(path, moved).content.decode()
    it.refresh_from_db()
    assert it.kind == "push"


def test_what_is_changed_here_stands_in_the_audit_log(admin, people):
    compartment = Compartment.objects.create(slug="c", name="C")
    bob = people["bob"]
    admin.post("/admin/corecube/grant/add/", {"user": bob.pk, "compartment": compartment.pk, "clearance": 1})
    grant = Grant.objects.get()
    changed = {"user": bob.pk, "compartment": compartment.pk, "clearance": 3}
    admin.post(f"/admin/corecube/grant/{grant.pk}/change/", changed)
    admin.post(f"/admin/corecube/grant/{grant.pk}/delete/", {"post": "yes"})
    admin.post("/admin/auth/group/add/", {"name": "finance"})
    password = {"password1": "wisteria-47-lane", "password2": "wisteria-47-lane", "usable_password": "true"}
    admin.post(f"/admin/corecube/user/{bob.pk}/password/", password)
    chosen = {"action": "delete_selected", "_selected_action": [compartment.pk], "post": "yes"}
    admin.post("/admin/corecube/compartment/", chosen)
    logged = list(AuditEvent.objects.filter(actor=people["alice"]).order_by("id").values_list("action", "subject"))
    assert logged == [
        ("grant.created", "user bob may see C up to Internal"),
        ("grant.changed", "user bob may see C up to Restricted"),
        ("grant.deleted", "user bob may see C up to Restricted"),
        ("group.created", "finance"),
        ("user.changed", "bob"),
        ("compartment.deleted", "c"),
    ]
    assert AuditEvent.objects.get(action="grant.changed").details == {"changed": ["clearance"]}
    assert "wisteria" not in str(list(AuditEvent.objects.values_list("details", flat=True)))


def test_who_is_an_admin_is_not_changed_here(admin, people):
    alice = people["alice"]
    admin.post(f"/admin/corecube/user/{alice.pk}/change/", {"username": "alice", "is_staff": "", "is_active": ""})
    assert admin.post(f"/admin/corecube/user/{alice.pk}/delete/", {"post": "yes"}).status_code == 403
    alice.refresh_from_db()
    assert alice.is_admin


def test_the_administration_points_no_connection_at_what_may_not_be_read(admin, tmp_path, settings):
    compartment = Compartment.objects.create(slug="c", name="C")
    settings.CORECUBE_FOLDER_ROOTS = [tmp_path / "allowed"]
    sent = connection(compartment, config=f'{{"path": "{tmp_path}"}}')
    assert "CORECUBE_FOLDER_ROOTS" in admin.post("/admin/corecube/connection/add/", sent).content.decode()
    stored = Connection.objects.create(
        slug="wiki",
        name="Wiki",
        kind="folder",
        config={"path": str(tmp_path)},
        command_path=str(tmp_path),
        compartment=compartment,
    )
    address = f"/admin/corecube/connection/{stored.pk}/change/"
    page = admin.post(address, {**sent, "name": "Notes"})
    assert page.status_code == 302, page.context["adminform"].form.errors
    moved = connection(compartment, config='{"path": "/etc"}')
    assert "CORECUBE_FOLDER_ROOTS" in admin.post(address, moved).content.decode()
    stored.refresh_from_db()
    assert (stored.name, stored.config) == ("Notes", {"path": str(tmp_path)})


def test_files_attached_to_conversations_are_neither_listed_nor_offered(client, world):
    attach(start(world.bob), "walrus.md", b"# Walrus")
    client.force_login(world.alice)
    found = Connection.objects.get(is_attached=True)
    grant = Grant.objects.get(compartment=found.compartment)
    key, _ = ApiKey.issue(user=world.bob, name="bot")
    for address in (
        "connection/",
        "connection/add/",
        "compartment/",
        "grant/",
        "grant/add/",
        f"connection/{world.vault.pk}/change/",
        f"apikey/{key.pk}/change/",
    ):
        shown = client.get(f"/admin/corecube/{address}").content.decode()
        assert "Finance" in shown, address
        assert [name for name in (found.name, found.slug, found.compartment.name) if name in shown] == [], address
    for address in (f"connection/{found.pk}", f"compartment/{found.compartment_id}", f"grant/{grant.pk}"):
        response = client.get(f"/admin/corecube/{address}/change/", follow=True)
        assert "doesn’t exist" in response.content.decode()  # noqa: RUF001 -- Django's apostrophe
